/* pthread_create and pthread_join. */
#include "bench.h"

#include <pthread.h>

#define LOOPS 5000

static void *nothing(void *argument)
{
	return argument;
}

static void run(void)
{
	pthread_t thread;

	if (pthread_create(&thread, 0, nothing, 0) || pthread_join(thread, 0))
		bench_die("pthread_create");
}

int main(void)
{
	for (long i = 0; i < LOOPS / 20; i++)
		run();
	long long start = gettimens();

	for (long i = 0; i < LOOPS; i++)
		run();
	emit_since("Thread", 0, LOOPS, start);
	return 0;
}
