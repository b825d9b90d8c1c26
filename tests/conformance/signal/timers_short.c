/* Timers that are always due: what a process has not taken counts as overruns, and everything else
 * goes on. */
#include "../check.h"
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t seen;

static void count(int sig)
{
	(void)sig;
	seen++;
}

static long long now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void overruns(void)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN };
	struct itimerspec spec = { .it_value = { 0, 1 }, .it_interval = { 0, 1 } }, left;
	struct timespec nap = { 0, 50000000 };
	sigset_t set;
	siginfo_t info;
	timer_t id;
	int overrun;

	sigemptyset(&set);
	sigaddset(&set, SIGRTMIN);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	NEED(timer_create(CLOCK_MONOTONIC, &event, &id) == 0);
	CHECK_EQ(timer_settime(id, 0, &spec, NULL), 0);
	for (int i = 0; i < 3; i++) {
		nanosleep(&nap, NULL);
		/* One signal waits, however often the timer has run out. */
		NEED(sigwaitinfo(&set, &info) == SIGRTMIN);
		CHECK_EQ(info.si_code, SI_TIMER);
		overrun = timer_getoverrun(id);
		CHECK_EQ(info.si_overrun, overrun);
		CHECK(overrun > 10000000);
	}
	CHECK_EQ(timer_gettime(id, &left), 0);
	CHECK_EQ(left.it_interval.tv_nsec, 1);
	CHECK(left.it_value.tv_nsec > 0);
	spec.it_value.tv_nsec = 0;
	CHECK_EQ(timer_settime(id, 0, &spec, NULL), 0);
	CHECK_EQ(timer_gettime(id, &left), 0);
	CHECK_EQ(left.it_value.tv_nsec, 0);
	CHECK_EQ(timer_delete(id), 0);
	NEED(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
}

/* Handlers again and again; the program gets on, and stops it. */
static void storm(void)
{
	struct itimerval timer = { { 0, 200 }, { 0, 200 } }, off = { { 0, 0 }, { 0, 0 } };
	long sum = 0;

	signal(SIGALRM, count);
	CHECK_EQ(setitimer(ITIMER_REAL, &timer, NULL), 0);
	while (seen < 200)
		sum++;
	CHECK_EQ(setitimer(ITIMER_REAL, &off, NULL), 0);
	CHECK(sum >= 0);
	seen = 0;
}

/* Setting one again replaces the earlier setting, as often as one likes. */
static void again(void)
{
	struct itimerval far = { { 0, 0 }, { 100000, 0 } }, near = { { 0, 0 }, { 0, 1000 } }, old;

	for (int i = 0; i < 2000; i++)
		if (setitimer(ITIMER_REAL, &far, &old) != 0)
			break;
	CHECK(old.it_value.tv_sec >= 99000);
	CHECK_EQ(seen, 0);
	CHECK_EQ(setitimer(ITIMER_REAL, &near, NULL), 0);
	while (!seen)
		;
	CHECK_EQ(seen, 1);
	CHECK_EQ(alarm(0), 0);
}

/* Another process has as many as there may be, which run out all the time: ours are not late by
 * much, nor early. */
static void beside(void)
{
	struct itimerspec spec = { .it_value = { 0, 1 }, .it_interval = { 0, 1 } };
	struct sigevent event = { .sigev_notify = SIGEV_NONE };
	struct itimerval timer = { { 0, 0 }, { 0, 20000 } };
	int ready[2], status;
	char byte;
	pid_t pid;

	NEED(pipe(ready) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		timer_t id;
		for (int i = 0; i < 500; i++)
			if (timer_create(CLOCK_MONOTONIC, &event, &id) != 0 || timer_settime(id, 0, &spec, NULL) != 0)
				_exit(1);
		if (write(ready[1], "r", 1) != 1)
			_exit(1);
		for (;;)
			pause();
	}
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	for (int i = 0; i < 10; i++) {
		long long start = now(), took;
		seen = 0;
		NEED(setitimer(ITIMER_REAL, &timer, NULL) == 0);
		while (!seen)
			usleep(100000);
		took = now() - start;
		CHECK(took >= 20000000);
		CHECK(took < 10000000000LL);
	}
	kill(pid, SIGKILL);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, SIGKILL);
}

int main(void)
{
	overruns();
	storm();
	again();
	beside();
	return check_done();
}
