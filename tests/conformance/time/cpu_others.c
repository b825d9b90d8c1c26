/* The processor time of other processes: a child's clock tells what it has used, and processes that
 * are not there have none. */
#include "check.h"

#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define PART   20000000LL
#define NOBODY (INT_MAX - 7)

static long long now(clockid_t clock)
{
	struct timespec time;

	NEED(clock_gettime(clock, &time) == 0);
	return (long long)time.tv_sec * 1000000000 + time.tv_nsec;
}

/* Uses processor time until its parent has seen it. */
static pid_t busy_child(void)
{
	pid_t child = fork();

	NEED(child >= 0);
	if (!child) {
		for (volatile unsigned i = 0;; i++)
			;
	}
	return child;
}

int main(void)
{
	clockid_t clock, own;
	struct timespec resolution;
	struct rusage used;
	pid_t child = busy_child();
	long long seen;
	int status, ready[2], go[2];

	NEED(clock_getcpuclockid(child, &clock) == 0);
	CHECK_EQ(clock_getres(clock, &resolution), 0);
	while ((seen = now(clock)) < PART)
		;
	while (now(clock) < seen + PART)
		;
	seen = now(clock);
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(wait4(child, &status, 0, &used), child);
	CHECK((used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1000000000LL +
		(used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1000LL >=
	    seen / 2);
	CHECK_ERRNO(clock_gettime(clock, &resolution), EINVAL);

	/* A waiting process uses almost no time. */
	NEED(pipe(ready) == 0 && pipe(go) == 0 && (child = fork()) >= 0);
	if (!child) {
		char byte;

		close(go[1]);
		write(ready[1], "x", 1);
		_exit((int)read(go[0], &byte, 1));
	}
	NEED(clock_getcpuclockid(child, &clock) == 0);
	CHECK_EQ(read(ready[0], &(char){ 0 }, 1), 1);
	CHECK(now(clock) < 1000000000);
	close(go[1]);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);

	CHECK_EQ(clock_getcpuclockid(NOBODY, &clock), ESRCH);
	CHECK_EQ(clock_getcpuclockid(getpid(), &own), 0);
	CHECK(now(own) > 0);
	close(ready[0]), close(ready[1]), close(go[0]);
	return check_done();
}
