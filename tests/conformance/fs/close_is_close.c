/* Tests that a descriptor is closed when close returns, from a program's first call on: nobody else
 * in its process keeps it. */
#include "check.h"

#include <fcntl.h>
#include <time.h>

/* Longer than a runner takes until it starts whatever it starts besides. */
static const double seconds = 0.02;

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

int main(void)
{
	char byte;
	int ends[2];

	/* A call that copies open descriptors has more to do with these, and comes late to the ends of the
	 * pipe. */
	for (int i = 0; i < 16; i++)
		NEED(open("/dev/null", O_RDONLY | O_CLOEXEC) >= 0);
	for (double end = now() + seconds; now() < end;) {
		NEED(pipe2(ends, O_NONBLOCK) == 0);
		CHECK_EQ(close(ends[1]), 0);
		/* EAGAIN as long as somebody could write. */
		CHECK_EQ(read(ends[0], &byte, 1), 0);
		CHECK_EQ(close(ends[0]), 0);
	}
	return check_done();
}
