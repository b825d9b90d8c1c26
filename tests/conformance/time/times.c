/* times, getrusage, clock: processor time is used by computing, not by sleeping. */
#include "check.h"

#include <sys/resource.h>
#include <sys/times.h>
#include <time.h>

/* Something after the struct, which nothing may overwrite. */
static struct {
	struct tms value;
	unsigned char after[64];
} guarded;

static double cpu_seconds(clockid_t clock)
{
	struct timespec ts;

	NEED(clock_gettime(clock, &ts) == 0);
	return (double)ts.tv_sec + (double)ts.tv_nsec / 1e9;
}

int main(void)
{
	struct rusage usage;
	volatile unsigned long sum = 0;
	double start = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID), thread = cpu_seconds(CLOCK_THREAD_CPUTIME_ID), slept;
	clock_t ticks;

	memset(&guarded, 0xee, sizeof guarded);
	ticks = times(&guarded.value);
	CHECK(ticks != (clock_t)-1);
	for (size_t i = 0; i < sizeof guarded.after; i++)
		NEED(guarded.after[i] == 0xee);
	CHECK_EQ(guarded.value.tms_cutime, 0);
	CHECK_EQ(guarded.value.tms_cstime, 0);

	while (cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - start < 0.05)
		for (int i = 0; i < 100000; i++)
			sum += (unsigned long)i;
	CHECK(cpu_seconds(CLOCK_THREAD_CPUTIME_ID) - thread > 0.02);
	CHECK(times(&guarded.value) >= ticks);
	CHECK(guarded.value.tms_utime + guarded.value.tms_stime >= 1);

	start = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID);
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	slept = cpu_seconds(CLOCK_PROCESS_CPUTIME_ID) - start;
	CHECK(slept < 0.08);

	NEED(getrusage(RUSAGE_SELF, &usage) == 0);
	CHECK(usage.ru_utime.tv_sec > 0 || usage.ru_utime.tv_usec > 0 || usage.ru_stime.tv_usec > 0);
	CHECK(usage.ru_utime.tv_usec >= 0 && usage.ru_utime.tv_usec < 1000000);
	CHECK(usage.ru_maxrss > 0);
	CHECK_EQ(getrusage(RUSAGE_CHILDREN, &usage), 0);
	CHECK_EQ(usage.ru_utime.tv_sec, 0);
	CHECK_ERRNO(getrusage(1234, &usage), EINVAL);
	return check_done();
}
