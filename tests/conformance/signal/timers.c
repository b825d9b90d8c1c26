/* alarm, setitimer, timer_create: they send their signals, interrupt what waits and what computes,
 * count overruns. */
#include "../check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t seen;
static siginfo_t last;

static void note(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	last = *info;
	seen++;
}

static volatile int called;

static void call(union sigval value)
{
	called = value.sival_int;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = note, .sa_flags = SA_SIGINFO };
	struct itimerval timer = { .it_value = { 0, 20000 } }, old;
	struct itimerspec spec = { .it_value = { 0, 20000000 } }, now;
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN, .sigev_value.sival_int = 42 };
	struct timespec nap = { 0, 30000000 };
	sigset_t block;
	siginfo_t info;
	timer_t id, other;

	NEED(sigaction(SIGALRM, &sa, 0) == 0);
	NEED(sigaction(SIGPROF, &sa, 0) == 0);
	NEED(sigaction(SIGRTMIN, &sa, 0) == 0);
	CHECK_EQ(alarm(100), 0);
	CHECK_EQ(alarm(0), 100);
	CHECK_EQ(alarm(0), 0);

	CHECK_EQ(setitimer(ITIMER_REAL, &timer, 0), 0);
	CHECK_ERRNO(pause(), EINTR);
	CHECK_EQ(seen, 1);
	CHECK_EQ(last.si_signo, SIGALRM);
	CHECK_EQ(last.si_code, SI_KERNEL);
	CHECK_EQ(getitimer(ITIMER_REAL, &old), 0);
	CHECK_EQ(old.it_value.tv_usec, 0);

	/* While it computes, again and again. */
	timer.it_interval.tv_usec = 5000;
	CHECK_EQ(setitimer(ITIMER_REAL, &timer, 0), 0);
	while (seen < 6)
		;
	timer.it_value.tv_usec = 0;
	CHECK_EQ(setitimer(ITIMER_REAL, &timer, &old), 0);
	CHECK_EQ(old.it_interval.tv_usec, 5000);
	CHECK(old.it_value.tv_usec > 0 && old.it_value.tv_usec <= 5000);
	CHECK_ERRNO(setitimer(7, &timer, 0), EINVAL);
	timer.it_value.tv_usec = 1000000;
	CHECK_ERRNO(setitimer(ITIMER_REAL, &timer, 0), EINVAL);

	/* Processor time passes only while it computes. */
	timer.it_value.tv_usec = 10000;
	timer.it_interval.tv_usec = 0;
	seen = 0;
	CHECK_EQ(setitimer(ITIMER_PROF, &timer, 0), 0);
	CHECK_EQ(nanosleep(&nap, 0), 0);
	CHECK_EQ(seen, 0);
	while (!seen)
		;
	CHECK_EQ(last.si_signo, SIGPROF);

	NEED(timer_create(CLOCK_MONOTONIC, &event, &id) == 0);
	CHECK_EQ(timer_gettime(id, &now), 0);
	CHECK(now.it_value.tv_sec == 0 && now.it_value.tv_nsec == 0);
	seen = 0;
	CHECK_EQ(timer_settime(id, 0, &spec, 0), 0);
	CHECK_EQ(timer_gettime(id, &now), 0);
	CHECK(now.it_value.tv_nsec > 0 && now.it_value.tv_nsec <= 20000000);
	while (!seen)
		pause();
	CHECK_EQ(last.si_code, SI_TIMER);
	CHECK_EQ(last.si_value.sival_int, 42);
	CHECK_EQ(last.si_overrun, 0);
	CHECK_EQ(timer_getoverrun(id), 0);

	/* One signal waits, and counts. */
	sigemptyset(&block);
	sigaddset(&block, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &block, 0);
	spec.it_value.tv_nsec = spec.it_interval.tv_nsec = 2000000;
	CHECK_EQ(timer_settime(id, 0, &spec, 0), 0);
	nanosleep(&nap, 0);
	CHECK_EQ(sigwaitinfo(&block, &info), SIGRTMIN);
	CHECK(info.si_overrun >= 5);
	CHECK_EQ(timer_getoverrun(id), info.si_overrun);
	CHECK_EQ(timer_delete(id), 0);
	/* Not -1 with musl. */
	CHECK(timer_delete(id) != 0);

	/* At a time. */
	event.sigev_notify = SIGEV_NONE;
	NEED(timer_create(CLOCK_REALTIME, &event, &other) == 0);
	clock_gettime(CLOCK_REALTIME, &spec.it_value);
	spec.it_value.tv_sec += 100;
	spec.it_interval.tv_nsec = 0;
	CHECK_EQ(timer_settime(other, TIMER_ABSTIME, &spec, 0), 0);
	CHECK_EQ(timer_gettime(other, &now), 0);
	CHECK(now.it_value.tv_sec == 99);
	CHECK_EQ(timer_delete(other), 0);

	/* A thread of its own. */
	event.sigev_notify = SIGEV_THREAD;
	event.sigev_notify_function = call;
	NEED(timer_create(CLOCK_MONOTONIC, &event, &other) == 0);
	spec.it_value = (struct timespec){ 0, 1000000 };
	CHECK_EQ(timer_settime(other, 0, &spec, 0), 0);
	for (int i = 0; !called && i < 1000; i++)
		nanosleep(&(struct timespec){ 0, 1000000 }, 0);
	CHECK_EQ(called, 42);
	CHECK_EQ(timer_delete(other), 0);
	return check_done();
}
