/* Children that live for less than a tick of the clock: what they have used is known when they have
 * ended. */
#include "check.h"
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILDREN 400
#define MICROS   200

static long used(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

static long usage(int who)
{
	struct rusage r;

	CHECK_EQ(getrusage(who, &r), 0);
	return (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec + r.ru_stime.tv_usec;
}

int main(void)
{
	long of_waits = 0, before, by_clock, all;

	for (int i = 0; i < CHILDREN; i++) {
		struct rusage r;
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			long from = used(CLOCK_PROCESS_CPUTIME_ID);

			while (used(CLOCK_PROCESS_CPUTIME_ID) - from < MICROS)
				;
			_exit(0);
		}
		NEED(pid > 0);
		CHECK_EQ(wait4(pid, &status, 0, &r), pid);
		of_waits += (r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1000000 + r.ru_utime.tv_usec + r.ru_stime.tv_usec;
	}
	/* A tenth less, for what is lost in rounding and in hosts that count otherwise. */
	CHECK(of_waits >= CHILDREN * MICROS * 9 / 10);
	all = usage(RUSAGE_CHILDREN);
	CHECK(all >= CHILDREN * MICROS * 9 / 10);
	/* A process's own: never more than its clock says, and not much less. */
	before = usage(RUSAGE_SELF);
	by_clock = used(CLOCK_PROCESS_CPUTIME_ID);
	CHECK(before <= by_clock);
	CHECK(by_clock - before < 4000);
	return check_done();
}
