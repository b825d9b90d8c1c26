/* A replay in which no program makes a call for much longer than the whole recording took has gone
 * another way, and is ended. */
#include <stdlib.h>
#include <time.h>
#include "replay.h"

static uint64_t progress;
static unsigned patience;

void watch_progress(void)
{
	__atomic_add_fetch(&progress, 1, __ATOMIC_RELAXED);
}

static void *watch(void *unused)
{
	uint64_t before = 0;

	(void)unused;
	for (unsigned idle = 0; idle < patience; idle++) {
		const struct timespec second = { .tv_sec = 1 };
		uint64_t now;

		nanosleep(&second, NULL);
		now = __atomic_load_n(&progress, __ATOMIC_RELAXED);
		if (now != before)
			idle = 0;
		before = now;
	}
	show_last();
	lind_log("no program has made a call for %u seconds: the replay does not go on as the record does", patience);
	living_end(125);
}

void watch_begin(const struct ending *ending)
{
	const uint64_t most = 86400;
	uint64_t seconds = ending ? ending->nanoseconds / 1000000000 : 60;
	pthread_attr_t attributes;
	pthread_t thread;

	patience = (unsigned)(30 + 10 * (seconds < most ? seconds : most));
	pthread_attr_init(&attributes);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	if (pthread_create(&thread, &attributes, watch, NULL))
		lind_die("cannot start a thread");
}
