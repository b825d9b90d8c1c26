/* Says what the clock is, in whole days; with words, does more. */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

__attribute__((import_module("lind"), import_name("syscall"))) long long raw(int nr, unsigned long long a,
    unsigned long long b, unsigned long long c, unsigned long long d, unsigned long long e, unsigned long long f);

static long long day(clockid_t clock)
{
	struct timespec now = { 0 };

	clock_gettime(clock, &now);
	return now.tv_sec / 86400;
}

/* All the ways to ask agree; the monotonic clock is another. */
static int ways(void)
{
	long long seconds = 0, two[2] = { 0 };
	long long answer = raw(SYS_time, (size_t)&seconds, 0, 0, 0, 0, 0);

	raw(SYS_gettimeofday, (size_t)two, 0, 0, 0, 0, 0);
	if (raw(SYS_clock_gettime, CLOCK_REALTIME, 16, 0, 0, 0, 0) != -EFAULT ||
	    raw(SYS_time, 16, 0, 0, 0, 0, 0) != -EFAULT)
		return printf("bad pointers\n");
	return printf("%lld %lld %lld %lld %s\n", day(CLOCK_REALTIME), answer / 86400, seconds / 86400, two[0] / 86400,
	    day(CLOCK_MONOTONIC) < 10000 ? "up" : "?");
}

/* Waits until a moment from now by the clock: none of these may take long, nor be over before. */
static int waits(void)
{
	pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	pthread_cond_t never = PTHREAD_COND_INITIALIZER;
	struct timespec until, after;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 30000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	if (clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &until, NULL))
		return 1;
	clock_gettime(CLOCK_REALTIME, &after);
	if (after.tv_sec < until.tv_sec || (after.tv_sec == until.tv_sec && after.tv_nsec < until.tv_nsec))
		return 1;
	until.tv_sec += 1;
	pthread_mutex_lock(&lock);
	if (pthread_cond_timedwait(&never, &lock, &until) != ETIMEDOUT)
		return 1;
	clock_gettime(CLOCK_REALTIME, &after);
	return after.tv_sec < until.tv_sec;
}

/* A timer set for a second from now, by a duplicate of its descriptor in a child. */
static int timer(clockid_t clock)
{
	int fd = timerfd_create(clock, 0), other = dup(fd);
	struct itimerspec at = { 0 };
	struct pollfd one = { other, POLLIN, 0 };
	int status;

	close(fd);
	if (!fork()) {
		clock_gettime(clock, &at.it_value);
		at.it_value.tv_sec++;
		_exit(timerfd_settime(other, TFD_TIMER_ABSTIME, &at, NULL));
	}
	if (wait(&status) < 0 || status)
		return 1;
	if (poll(&one, 1, 0) != 0)
		return puts("at once"), 1;
	if (poll(&one, 1, 20000) != 1)
		return puts("never"), 1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return printf("%lld\n", day(CLOCK_REALTIME)), 0;
	if (!strcmp(argv[1], "ways"))
		return ways() < 0;
	if (!strcmp(argv[1], "waits"))
		return waits();
	if (!strcmp(argv[1], "timers"))
		return timer(CLOCK_REALTIME) || timer(CLOCK_MONOTONIC);
	/* Each program starts at the same time, and a fork goes on. */
	for (int i = 0; i < 2; i++) {
		fflush(stdout);
		if (!fork()) {
			if (i)
				execl(argv[0], argv[0], NULL);
			printf("%lld\n", day(CLOCK_REALTIME));
			fflush(stdout);
			_exit(0);
		}
		wait(NULL);
	}
	return 0;
}
