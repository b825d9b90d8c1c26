/* Thread-local variables in the one thread: initial values, alignment, addresses, and
 * thread-specific data. */
#include "check.h"

#include <pthread.h>

static _Thread_local int number = 42;
static _Thread_local char zero[1000];
static _Thread_local _Alignas(64) char aligned[64] = "aligned";
_Thread_local long long wide = 0x123456789abcdef0;

static int destroyed;

static void destroy(void *p)
{
	(void)p;
	destroyed++;
}

int main(void)
{
	pthread_key_t key;
	pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

	CHECK_EQ(number, 42);
	CHECK_EQ(wide, 0x123456789abcdef0);
	CHECK_STR(aligned, "aligned");
	CHECK_EQ((uintptr_t)aligned % 64, 0);
	for (size_t i = 0; i < sizeof zero; i++)
		NEED(zero[i] == 0);
	number++;
	CHECK_EQ(*(&number), 43);

	CHECK_EQ(pthread_key_create(&key, destroy), 0);
	CHECK(pthread_getspecific(key) == NULL);
	CHECK_EQ(pthread_setspecific(key, &number), 0);
	CHECK(pthread_getspecific(key) == &number);
	CHECK_EQ(pthread_key_delete(key), 0);
	CHECK_EQ(destroyed, 0);
	CHECK(pthread_equal(pthread_self(), pthread_self()));
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	CHECK_EQ(pthread_mutex_trylock(&mutex), EBUSY);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	return check_done();
}
