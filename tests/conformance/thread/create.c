/* Threads: creation, join, return values, thread-local data, attributes, ids, limits of stacks. */
#include "check.h"
#include <pthread.h>
#include <sys/syscall.h>

enum { THREADS = 16 };

static _Thread_local int local = 5;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int total;
static pid_t tids[THREADS];

static void *work(void *number)
{
	long n = (long)number;

	CHECK_EQ(local, 5);
	local += (int)n;
	errno = (int)n + 1;
	for (int i = 0; i < 500; i++) {
		pthread_mutex_lock(&lock);
		total++;
		pthread_mutex_unlock(&lock);
	}
	CHECK_EQ(errno, n + 1);
	tids[n] = (pid_t)syscall(SYS_gettid);
	CHECK_EQ(getpid() == tids[n], 0);
	return (void *)(long)local;
}

static void *leave(void *value)
{
	pthread_exit(value);
}

static void *deep(void *unused)
{
	char big[256 * 1024];

	memset(big, 1, sizeof big);
	(void)unused;
	return (void *)(long)big[sizeof big / 2];
}

static void *own_stack(void *low)
{
	int here;

	return (void *)(long)((char *)&here > (char *)low && (char *)&here < (char *)low + 128 * 1024);
}

int main(void)
{
	pthread_t threads[THREADS];
	pthread_attr_t attr;
	void *result, *stack;
	size_t size;

	for (long i = 0; i < THREADS; i++)
		NEED(pthread_create(&threads[i], NULL, work, (void *)i) == 0);
	for (long i = 0; i < THREADS; i++) {
		CHECK_EQ(pthread_join(threads[i], &result), 0);
		CHECK_EQ((long)result, 5 + i);
	}
	CHECK_EQ(total, THREADS * 500);
	CHECK_EQ(local, 5);
	for (int i = 0; i < THREADS; i++)
		for (int j = 0; j < i; j++)
			CHECK(tids[i] != tids[j]);

	NEED(pthread_create(&threads[0], NULL, leave, (void *)42L) == 0);
	CHECK_EQ(pthread_join(threads[0], &result), 0);
	CHECK_EQ((long)result, 42);

	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setstacksize(&attr, 512 * 1024), 0);
	CHECK_EQ(pthread_attr_getstacksize(&attr, &size), 0);
	CHECK_EQ(size, 512 * 1024);
	NEED(pthread_create(&threads[0], &attr, deep, NULL) == 0);
	CHECK_EQ(pthread_join(threads[0], &result), 0);
	CHECK_EQ((long)result, 1);
	stack = aligned_alloc(4096, 128 * 1024);
	NEED(stack);
	CHECK_EQ(pthread_attr_setstack(&attr, stack, 128 * 1024), 0);
	NEED(pthread_create(&threads[0], &attr, own_stack, stack) == 0);
	CHECK_EQ(pthread_join(threads[0], &result), 0);
	CHECK_EQ((long)result, 1);
	free(stack);
	CHECK_EQ(pthread_attr_destroy(&attr), 0);

	CHECK_EQ(pthread_equal(pthread_self(), pthread_self()) != 0, 1);
	return check_done();
}
