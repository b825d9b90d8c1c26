/* Tests everything that threads wait on: mutexes of all kinds, conditions, semaphores, barriers,
 * read-write locks, once, keys. */
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <threads.h>
#include <time.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static pthread_barrier_t barrier;
static pthread_rwlock_t rwlock = PTHREAD_RWLOCK_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static sem_t semaphore;
static pthread_key_t key;
static int turn, destroyed, initialised, serial;

static void *ping(void *parity)
{
	for (int i = 0; i < 1000; i++) {
		pthread_mutex_lock(&lock);
		while (turn % 2 != (int)(long)parity)
			pthread_cond_wait(&changed, &lock);
		turn++;
		pthread_cond_broadcast(&changed);
		pthread_mutex_unlock(&lock);
	}
	return NULL;
}

static void init(void)
{
	initialised++;
}

static void *meet(void *unused)
{
	(void)unused;
	pthread_once(&once, init);
	if (pthread_barrier_wait(&barrier) == PTHREAD_BARRIER_SERIAL_THREAD)
		__atomic_add_fetch(&serial, 1, __ATOMIC_SEQ_CST);
	sem_post(&semaphore);
	return NULL;
}

static void destroy(void *value)
{
	destroyed += (int)(long)value;
}

static void *keyed(void *value)
{
	CHECK(pthread_getspecific(key) == NULL);
	CHECK_EQ(pthread_setspecific(key, value), 0);
	return pthread_getspecific(key);
}

static void *try_locks(void *mutex)
{
	return (void *)(long)pthread_mutex_trylock(mutex);
}

static int c11(void *value)
{
	return *(int *)value + 1;
}

static void deadline(struct timespec *at, long ms)
{
	clock_gettime(CLOCK_REALTIME, at);
	at->tv_nsec += ms * 1000000;
	at->tv_sec += at->tv_nsec / 1000000000;
	at->tv_nsec %= 1000000000;
}

static long in_thread(void *(*function)(void *), void *argument)
{
	pthread_t thread;
	void *result = NULL;

	NEED(pthread_create(&thread, NULL, function, argument) == 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	return (long)result;
}

int main(void)
{
	pthread_t threads[4];
	pthread_mutexattr_t attr;
	pthread_mutex_t mutex;
	struct timespec at;
	thrd_t c11_thread;
	int value = 41;

	for (long i = 0; i < 2; i++)
		NEED(pthread_create(&threads[i], NULL, ping, (void *)i) == 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(turn, 2000);

	CHECK_EQ(pthread_barrier_init(&barrier, NULL, 4), 0);
	CHECK_EQ(sem_init(&semaphore, 0, 0), 0);
	for (int i = 0; i < 4; i++)
		NEED(pthread_create(&threads[i], NULL, meet, NULL) == 0);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(sem_wait(&semaphore), 0);
	CHECK_ERRNO(sem_trywait(&semaphore), EAGAIN);
	for (int i = 0; i < 4; i++)
		CHECK_EQ(pthread_join(threads[i], NULL), 0);
	CHECK_EQ(serial, 1);
	CHECK_EQ(initialised, 1);
	deadline(&at, 20);
	CHECK_ERRNO(sem_timedwait(&semaphore, &at), ETIMEDOUT);

	CHECK_EQ(pthread_key_create(&key, destroy), 0);
	CHECK_EQ(in_thread(keyed, (void *)3L), 3);
	CHECK_EQ(in_thread(keyed, (void *)4L), 4);
	CHECK_EQ(destroyed, 7);

	pthread_mutexattr_init(&attr);
	CHECK_EQ(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE), 0);
	pthread_mutex_init(&mutex, &attr);
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	CHECK_EQ(in_thread(try_locks, &mutex), EBUSY);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	CHECK_EQ(pthread_mutex_unlock(&mutex), EPERM);
	CHECK_EQ(pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ERRORCHECK), 0);
	pthread_mutex_init(&mutex, &attr);
	CHECK_EQ(pthread_mutex_lock(&mutex), 0);
	CHECK_EQ(pthread_mutex_lock(&mutex), EDEADLK);
	deadline(&at, 20);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	pthread_mutex_lock(&lock);
	CHECK_EQ(pthread_cond_timedwait(&changed, &lock, &at), ETIMEDOUT);
	CHECK_EQ(pthread_mutex_timedlock(&mutex, &at), 0);
	pthread_mutex_unlock(&lock);

	/* Its owner dies. */
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_NORMAL);
	CHECK_EQ(pthread_mutexattr_setrobust(&attr, PTHREAD_MUTEX_ROBUST), 0);
	pthread_mutex_init(&mutex, &attr);
	CHECK_EQ(in_thread(try_locks, &mutex), 0);
	CHECK_EQ(pthread_mutex_lock(&mutex), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_consistent(&mutex), 0);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	CHECK_EQ(in_thread(try_locks, &mutex), 0);
	CHECK_EQ(pthread_mutex_lock(&mutex), EOWNERDEAD);
	CHECK_EQ(pthread_mutex_unlock(&mutex), 0);
	CHECK_EQ(pthread_mutex_lock(&mutex), ENOTRECOVERABLE);

	CHECK_EQ(pthread_rwlock_rdlock(&rwlock), 0);
	CHECK_EQ(pthread_rwlock_tryrdlock(&rwlock), 0);
	CHECK_EQ(pthread_rwlock_trywrlock(&rwlock), EBUSY);
	CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
	CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);
	CHECK_EQ(pthread_rwlock_wrlock(&rwlock), 0);
	CHECK_EQ(pthread_rwlock_tryrdlock(&rwlock), EBUSY);
	CHECK_EQ(pthread_rwlock_unlock(&rwlock), 0);

	NEED(thrd_create(&c11_thread, c11, &value) == thrd_success);
	CHECK_EQ(thrd_join(c11_thread, &value), thrd_success);
	CHECK_EQ(value, 42);
	return check_done();
}
