/* Threads that call a grate once and end, 16 at a time: the grate's workers come and go as fast as
 * they can. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>

__attribute__((import_module("lind"), import_name("syscall"))) long long raw(int nr, unsigned long long a,
    unsigned long long b, unsigned long long c, unsigned long long d, unsigned long long e, unsigned long long f);

static void *once(void *unused)
{
	if (raw(903, 0, 0, 0, 0, 0, 0))
		exit(1);
	return unused;
}

static void *many(void *unused)
{
	for (int i = 0; i < 500; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, once, NULL))
			exit(2);
		pthread_join(thread, NULL);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[16];

	for (int i = 0; i < 16; i++)
		if (pthread_create(&threads[i], NULL, many, NULL))
			return 2;
	for (int i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
