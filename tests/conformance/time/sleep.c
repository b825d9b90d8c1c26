/* nanosleep, clock_nanosleep, usleep: never too short; padding of a timespec does not matter. */
#include "check.h"

#include <time.h>

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (long long)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int main(void)
{
	struct timespec ts, left;
	long long start = now();

	memset(&ts, 0xff, sizeof ts);
	ts.tv_sec = 0, ts.tv_nsec = 20000000;
	CHECK_EQ(nanosleep(&ts, NULL), 0);
	CHECK(now() - start >= 20000000);
	CHECK(now() - start < 5000000000);
	left = (struct timespec){ .tv_sec = 77 };
	ts.tv_nsec = 0;
	CHECK_EQ(nanosleep(&ts, &left), 0);
	CHECK_EQ(left.tv_sec, 77);

	start = now();
	ts.tv_nsec = 10000000;
	CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, 0, &ts, NULL), 0);
	CHECK(now() - start >= 10000000);
	start = now() + 10000000;
	ts.tv_sec = (time_t)(start / 1000000000), ts.tv_nsec = (long)(start % 1000000000);
	CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL), 0);
	CHECK(now() >= start);
	/* A time that has passed does not wait. */
	CHECK_EQ(clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &(struct timespec){ .tv_sec = 1 }, NULL), 0);
	CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &(struct timespec){ .tv_sec = 1 }, NULL), 0);

	ts.tv_sec = 0, ts.tv_nsec = 1000000000;
	CHECK_ERRNO(nanosleep(&ts, NULL), EINVAL);
	ts.tv_sec = -1, ts.tv_nsec = 0;
	CHECK_ERRNO(nanosleep(&ts, NULL), EINVAL);
	CHECK_EQ(clock_nanosleep(1234, 0, &(struct timespec){ 0 }, NULL), EINVAL);
	CHECK_EQ(usleep(1000), 0);
	return check_done();
}
