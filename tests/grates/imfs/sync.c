/* The lock of imfs: writers alone, readers never beside one, threads more than slots. */
#include <pthread.h>
#include <stdio.h>
#include "sync.h"

#define THREADS 40
#define ROUNDS 200000

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

int main(void)
{
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
