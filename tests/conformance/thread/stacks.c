/* Threads one after the other and side by side, with stacks of several sizes, joined and detached:
 * each finds its thread-local data as new, whatever the one before it left on the same stack, and
 * may use all of the stack that it asked for. */
#include "check.h"

#include <pthread.h>
#include <semaphore.h>

#define ROUNDS 300
#define MOST   8

static const size_t sizes[] = { 0, 40000, 100000, 300000, 3 << 20 };

static _Thread_local int initialised = 42;
static _Thread_local char zero[300];
static pthread_key_t key;
static sem_t ended;
static uint64_t state = 0x2545f4914f6cdd1d;

static size_t any(size_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (size_t)(state >> 20) % below;
}

static __attribute__((noinline)) void use(volatile char *stack, size_t size)
{
	for (size_t i = 0; i < size; i += 512)
		stack[i] = (char)0xee;
}

static void *body(void *size)
{
	/* Less than all of it: what else is on the stack differs between libraries. */
	char stack[(size_t)size - (size_t)size / 3 - 8192];

	CHECK_EQ(initialised, 42);
	for (size_t i = 0; i < sizeof zero; i++)
		NEED(!zero[i]);
	CHECK(!pthread_getspecific(key));
	initialised = 7;
	memset(zero, 0xee, sizeof zero);
	NEED(pthread_setspecific(key, zero) == 0);
	errno = EXDEV;
	use(stack, sizeof stack);
	return size;
}

static void *body_of_detached(void *size)
{
	body(size);
	sem_post(&ended);
	return NULL;
}

int main(void)
{
	int detached = 0;

	NEED(pthread_key_create(&key, NULL) == 0 && sem_init(&ended, 0, 0) == 0);
	for (int round = 0; round < ROUNDS && !check_failures; round++) {
		pthread_t threads[MOST];
		size_t of[MOST], count = 1 + any(MOST);
		int joined[MOST];

		for (size_t i = 0; i < count; i++) {
			size_t size = sizes[any(sizeof sizes / sizeof *sizes)];
			pthread_attr_t attr;

			NEED(pthread_attr_init(&attr) == 0);
			if (size)
				NEED(pthread_attr_setstacksize(&attr, size) == 0);
			if (any(4) == 0)
				NEED(pthread_attr_setguardsize(&attr, any(3) * 4096) == 0);
			of[i] = size ? size : 65536;
			joined[i] = any(3) != 0;
			if (!joined[i])
				NEED(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED) == 0);
			NEED(pthread_create(&threads[i], &attr, joined[i] ? body : body_of_detached, (void *)of[i]) ==
			    0);
			detached += !joined[i];
			pthread_attr_destroy(&attr);
		}
		for (size_t i = 0; i < count; i++) {
			void *result;

			if (joined[i]) {
				NEED(pthread_join(threads[i], &result) == 0);
				CHECK_EQ((size_t)result, of[i]);
			}
		}
		for (; detached; detached--)
			NEED(sem_wait(&ended) == 0);
	}
	return check_done();
}
