/* The lock of imfs: writers alone, readers never beside one, threads more than slots, and the first
 * thread's time alone. */
#include <pthread.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#include "sync.h"

#define THREADS 40
#define ROUNDS  200000

static volatile long a, b;
static int torn;

static void *work(void *arg)
{
	unsigned seed = (unsigned)(uintptr_t)arg * 7919 + 1;

	for (int i = 0; i < ROUNDS; i++) {
		seed = seed * 1103515245 + 12345;
		if (seed >> 16 & 7) {
			imfs_read_lock();
			if (a != b)
				torn++;
			imfs_read_unlock();
		} else {
			imfs_write_lock();
			a++;
			b++;
			imfs_write_unlock();
		}
	}
	return NULL;
}

/* The second thread comes while the first is in and out all the time: once in the life of a
 * process. */
static volatile int second_is_done;

static void *first(void *arg)
{
	while (!second_is_done) {
		imfs_write_lock();
		a++;
		b++;
		imfs_write_unlock();
		imfs_read_lock();
		if (a != b)
			torn++;
		imfs_read_unlock();
	}
	return arg;
}

static void *second(void *arg)
{
	for (int i = 0; i < 200; i++) {
		imfs_read_lock();
		if (a != b)
			torn++;
		imfs_read_unlock();
		imfs_write_lock();
		a += 3;
		b += 3;
		imfs_write_unlock();
	}
	second_is_done = 1;
	return arg;
}

static int meet(unsigned pause)
{
	pthread_t threads[2];

	imfs_sync_init();
	if (imfs_company)
		return 2;
	pthread_create(&threads[0], NULL, first, NULL);
	while (!a)
		;
	for (volatile unsigned i = 0; i < pause; i++)
		;
	pthread_create(&threads[1], NULL, second, NULL);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	return torn || a != b || !imfs_company;
}

static int meet_often(void)
{
	for (unsigned i = 0; i < 300; i++) {
		pid_t child = fork();
		int status;

		if (!child)
			_exit(meet(i * 7));
		if (waitpid(child, &status, 0) != child || status) {
			printf("meeting %u: status %x\n", i, status);
			return 1;
		}
	}
	return 0;
}

int main(void)
{
	if (meet_often())
		return 1;
	pthread_t threads[THREADS];
	long writes = 0;

	for (uintptr_t i = 0; i < THREADS; i++)
		pthread_create(&threads[i], NULL, work, (void *)i);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	for (unsigned i = 0; i < THREADS; i++) {
		unsigned seed = i * 7919 + 1;

		for (int k = 0; k < ROUNDS; k++) {
			seed = seed * 1103515245 + 12345;
			writes += !(seed >> 16 & 7);
		}
	}
	if (torn || a != writes || b != writes)
		printf("%d torn reads, %ld and %ld of %ld writes\n", torn, a, b, writes);
	return torn || a != writes || b != writes;
}
