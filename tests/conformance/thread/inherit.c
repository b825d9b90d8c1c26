/* Mutexes with priority inheritance: of each type, robust ones too, between threads and between
 * processes. */
#include "../check.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 4, TIMES = 2000 };

static pthread_mutex_t *mutex;
static long *counter;

static void make(int type, int shared, int robust)
{
	pthread_mutexattr_t attributes;
	int protocol = -1;

	NEED(pthread_mutexattr_init(&attributes) == 0);
	NEED(pthread_mutexattr_settype(&attributes, type) == 0);
	NEED(pthread_mutexattr_setprotocol(&attributes, PTHREAD_PRIO_INHERIT) == 0);
	CHECK_EQ(pthread_mutexattr_getprotocol(&attributes, &protocol), 0);
	CHECK_EQ(protocol, PTHREAD_PRIO_INHERIT);
	if (shared)
		NEED(pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED) == 0);
	if (robust)
		NEED(pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST) == 0);
	NEED(pthread_mutex_init(mutex, &attributes) == 0);
	*counter = 0;
}

static void *counts(void *unused)
{
	for (int i = 0; i < TIMES; i++) {
		if (pthread_mutex_lock(mutex))
			abort();
		++*counter;
		if (pthread_mutex_unlock(mutex))
			abort();
	}
	return unused;
}

static void *is_held(void *unused)
{
	struct timespec soon;

	CHECK_EQ(pthread_mutex_trylock(mutex), EBUSY);
	clock_gettime(CLOCK_REALTIME, &soon);
	soon.tv_nsec += 20000000;
	if (soon.tv_nsec >= 1000000000)
		soon.tv_sec++, soon.tv_nsec -= 1000000000;
	CHECK_EQ(pthread_mutex_timedlock(mutex, &soon), ETIMEDOUT);
	return unused;
}

static void between_threads(int type)
{
	pthread_t threads[THREADS];

	make(type, 0, 0);
	CHECK_EQ(pthread_mutex_lock(mutex), 0);
	if (type == PTHREAD_MUTEX_ERRORCHECK)
		CHECK_EQ(pthread_mutex_lock(mutex), EDEADLK);
	if (type == PTHREAD_MUTEX_RECURSIVE) {
		CHECK_EQ(pthread_mutex_lock(mutex), 0);
		CHECK_EQ(pthread_mutex_unlock(mutex), 0);
	}
	NEED(pthread_create(&threads[0], NULL, is_held, NULL) == 0);
	pthread_join(threads[0], NULL);
	CHECK_EQ(pthread_mutex_unlock(mutex), 0);
	for (int i = 0; i < THREADS; i++)
		NEED(pthread_create(&threads[i], NULL, counts, NULL) == 0);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	CHECK_EQ(*counter, THREADS * TIMES);
	CHECK_EQ(pthread_mutex_destroy(mutex), 0);
}

static void between_processes(void)
{
	int status;

	make(PTHREAD_MUTEX_NORMAL, 1, 0);
	for (int i = 0; i < 2; i++)
		if (!fork()) {
			counts(NULL);
			_exit(0);
		}
	counts(NULL);
	while (wait(&status) > 0)
		CHECK_EQ(status, 0);
	CHECK_EQ(*counter, 3 * TIMES);
}

int main(void)
{
	const int types[] = { PTHREAD_MUTEX_NORMAL, PTHREAD_MUTEX_RECURSIVE, PTHREAD_MUTEX_ERRORCHECK };

	mutex = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(mutex != MAP_FAILED);
	counter = (long *)(mutex + 1);
	for (int i = 0; i < 3; i++)
		between_threads(types[i]);
	between_processes();
	return check_done();
}
