/* How threads and processes with threads end: detached threads, the main thread first, exit of the
 * whole process. */
#include "check.h"
#include <pthread.h>
#include <semaphore.h>
#include <time.h>

static sem_t started;
static int stage;

static void *forever(void *unused)
{
	(void)unused;
	sem_post(&started);
	for (;;)
		pause();
}

static void *spin(void *unused)
{
	(void)unused;
	sem_post(&started);
	for (;;)
		__atomic_load_n(&stage, __ATOMIC_RELAXED);
}

static void *detached(void *unused)
{
	(void)unused;
	__atomic_store_n(&stage, 1, __ATOMIC_SEQ_CST);
	sem_post(&started);
	return NULL;
}

static void *last(void *main_thread)
{
	void *result;

	/* The main thread can be joined like any other. */
	CHECK_EQ(pthread_join(*(pthread_t *)main_thread, &result), 0);
	CHECK_EQ((long)result, 9);
	/* The others wait and spin; exit ends them. */
	exit(check_done());
}

int main(void)
{
	static pthread_t self;
	pthread_t thread;
	pthread_attr_t attr;

	self = pthread_self();
	NEED(sem_init(&started, 0, 0) == 0);
	CHECK_EQ(pthread_attr_init(&attr), 0);
	CHECK_EQ(pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED), 0);
	for (int i = 0; i < 20; i++) {
		NEED(pthread_create(&thread, &attr, detached, NULL) == 0);
		CHECK_EQ(sem_wait(&started), 0);
		CHECK_EQ(stage, 1);
	}
	NEED(pthread_create(&thread, NULL, detached, NULL) == 0);
	CHECK_EQ(pthread_detach(thread), 0);
	CHECK_EQ(sem_wait(&started), 0);

	NEED(pthread_create(&thread, NULL, forever, NULL) == 0);
	NEED(pthread_create(&thread, NULL, spin, NULL) == 0);
	CHECK_EQ(sem_wait(&started), 0);
	CHECK_EQ(sem_wait(&started), 0);
	NEED(pthread_create(&thread, NULL, last, &self) == 0);
	pthread_exit((void *)9L);
}
