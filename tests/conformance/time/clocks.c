/* clock_gettime, clock_getres, gettimeofday, time: order, agreement, resolution, errors. */
#include "check.h"

#include <sys/time.h>
#include <time.h>
#include <sys/syscall.h>

static long long now(clockid_t clock)
{
	struct timespec ts;

	NEED(clock_gettime(clock, &ts) == 0);
	NEED(ts.tv_nsec >= 0 && ts.tv_nsec < 1000000000);
	return (long long)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int main(void)
{
	static const clockid_t clocks[] = { CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS_CPUTIME_ID,
		CLOCK_THREAD_CPUTIME_ID, CLOCK_MONOTONIC_RAW, CLOCK_REALTIME_COARSE, CLOCK_MONOTONIC_COARSE,
		CLOCK_BOOTTIME };
	struct timespec ts;
	struct timeval tv;
	long long before, middle, after;
	time_t seconds;

	for (size_t i = 0; i < sizeof clocks / sizeof *clocks; i++) {
		CHECK_EQ(clock_getres(clocks[i], &ts), 0);
		CHECK(ts.tv_sec == 0 && ts.tv_nsec >= 1 && ts.tv_nsec <= 20000000);
		CHECK(now(clocks[i]) >= 0);
	}
	CHECK_EQ(clock_getres(CLOCK_MONOTONIC, NULL), 0);
	before = now(CLOCK_MONOTONIC);
	for (int i = 0; i < 1000; i++) {
		after = now(CLOCK_MONOTONIC);
		NEED(after >= before);
		before = after;
	}
	CHECK(now(CLOCK_MONOTONIC) > 0);
	CHECK(now(CLOCK_BOOTTIME) / 1000000000 >= now(CLOCK_MONOTONIC) / 1000000000);

	before = now(CLOCK_REALTIME) / 1000;
	CHECK_EQ(gettimeofday(&tv, NULL), 0);
	after = now(CLOCK_REALTIME) / 1000;
	middle = (long long)tv.tv_sec * 1000000 + tv.tv_usec;
	CHECK(before <= middle && middle <= after);
	after = time(&seconds);
	CHECK_EQ(after, seconds);
	CHECK(seconds >= tv.tv_sec - 1 && seconds <= tv.tv_sec + 5);
	/* This program was written in 2026. */
	CHECK(seconds > 1750000000);

	CHECK_ERRNO(clock_gettime(1234, &ts), EINVAL);
	CHECK_ERRNO(clock_getres(-1000000, &ts), EINVAL);
	CHECK(clock() != (clock_t)-1);
	CHECK_EQ(timespec_get(&ts, TIME_UTC), TIME_UTC);
	return check_done();
}
