/* Two threads that take turns, by a mutex and a condition: round trips. And a mutex without anyone
 * else. */
#include "bench.h"

#include <pthread.h>

#define LOOPS 20000
#define ALONE 10000000

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed[2] = { PTHREAD_COND_INITIALIZER, PTHREAD_COND_INITIALIZER };
static int turn;

static void *play(void *side)
{
	int me = side != 0;

	pthread_mutex_lock(&lock);
	for (long i = 0; i < LOOPS; i++) {
		while (turn != me)
			pthread_cond_wait(&changed[me], &lock);
		turn = !me;
		pthread_cond_signal(&changed[!me]);
	}
	pthread_mutex_unlock(&lock);
	return 0;
}

int main(void)
{
	pthread_t other;

	if (pthread_create(&other, 0, play, &turn))
		bench_die("pthread_create");
	long long start = gettimens();

	play(0);
	pthread_join(other, 0);
	emit_since("Condvar", 0, LOOPS, start);
	start = gettimens();
	for (long i = 0; i < ALONE; i++) {
		pthread_mutex_lock(&lock);
		turn = !turn;
		pthread_mutex_unlock(&lock);
	}
	emit_since("Mutex", 0, ALONE, start);
	return 0;
}
