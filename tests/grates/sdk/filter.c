/*
 * Behind filter_grate.c: `filter` makes calls from threads, forks and a program that it turns into;
 * `filter signals` is interrupted all the time, `filter fault` and `filter stuck` meet the filter's
 * ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CALLS   500
#define THREADS 4

/* As the system call has it, which libc turns around. */
static long prio(long which, long who)
{
	long r = syscall(SYS_getpriority, which, who);

	return r < 0 ? -errno : r;
}

static void check(const char *what, long got, long wanted)
{
	if (got == wanted)
		return;
	printf("%s: %ld, not %ld\n", what, got, wanted);
	exit(1);
}

/* How often the handler was entered; libc's getpgrp is another call. */
static long entered(void)
{
	return syscall(SYS_getpgrp);
}

/* Enters the handler for the first call only, which has no worker yet. */
static void calls(void)
{
	for (long i = 0; i < CALLS; i++) {
		check("answered", prio(1, i), 2 * i);
		/* Of the user: no other process has changed its niceness. */
		check("gone on", prio(2, 0), 20);
	}
}

static void *thread(void *unused)
{
	calls();
	return unused;
}

static void entered_at_most(int most)
{
	long times = entered();

	if (times < 0 || times > most) {
		printf("the handler was entered %ld times, not at most %d\n", times, most);
		exit(1);
	}
}

static volatile sig_atomic_t signals;

static void count(int signal)
{
	(void)signal;
	signals++;
}

/* Filters are left wherever they are, and what was asked is answered all the same. */
static void interrupted(void)
{
	struct itimerval often = { { 0, 300 }, { 0, 300 } }, never = { 0 };

	signal(SIGALRM, count);
	if (setitimer(ITIMER_REAL, &often, NULL))
		exit(1);
	while (signals < 1000)
		calls();
	setitimer(ITIMER_REAL, &never, NULL);
}

static void everywhere(char *self)
{
	pthread_t threads[THREADS];
	int status;

	calls();
	entered_at_most(1);
	for (int i = 0; i < THREADS; i++)
		if (pthread_create(&threads[i], NULL, thread, NULL))
			exit(1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(threads[i], NULL);
	entered_at_most(THREADS);
	if (!fork()) {
		calls();
		execl(self, self, "again", NULL);
		_exit(1);
	}
	check("child", wait(&status) > 0 ? status : -1, 0);
	entered_at_most(2);
	for (int i = 0; i < 3; i++)
		check("asked", prio(3, 0), -EXFULL);
	check("entered", entered(), 3);
	getsid(1);
	calls();
	check("entered without the filter", entered(), 2 * CALLS);
	getsid(2);
	check("dead", prio(1, 2), -EIO);
	check("dead", prio(2, 0), -EIO);
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "again")) {
		calls();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "signals")) {
		interrupted();
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "fault")) {
		calls();
		check("faulted", prio(4, 0xfffffff8), -EXFULL);
		entered();
		check("after that", prio(1, 4), 8);
		check("entered", entered(), 1);
		return 0;
	}
	if (argc > 1 && !strcmp(argv[1], "stuck")) {
		calls();
		alarm(1);
		for (;;)
			prio(5, 0);
	}
	everywhere(argv[0]);
	return 0;
}
