/* Timers and sleeps by processor time: of the process, of a thread, of another thread. */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <time.h>

enum { PART = 20000000 };

static volatile sig_atomic_t alarms;
static volatile int busy = 1;
static clockid_t clock_of_other;

static void note(int number)
{
	(void)number;
	alarms++;
}

static long long now(clockid_t clock)
{
	struct timespec time;

	CHECK_EQ(clock_gettime(clock, &time), 0);
	return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void *burns(void *unused)
{
	(void)unused;
	while (busy)
		;
	return NULL;
}

static timer_t timer_on(clockid_t clock)
{
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	timer_t timer = 0;

	NEED(timer_create(clock, &event, &timer) == 0);
	return timer;
}

static void set(timer_t timer, long nanos, long interval)
{
	struct itimerspec when = { { 0, interval }, { 0, nanos } };

	CHECK_EQ(timer_settime(timer, 0, &when, NULL), 0);
}

static void of_this_thread(void)
{
	timer_t timer = timer_on(CLOCK_THREAD_CPUTIME_ID);
	struct itimerspec left;
	long long start;

	/* Time that it sleeps does not count. */
	set(timer, PART, 0);
	nanosleep(&(struct timespec){ 0, 3 * PART }, NULL);
	CHECK_EQ(alarms, 0);
	CHECK_EQ(timer_gettime(timer, &left), 0);
	CHECK(left.it_value.tv_sec == 0 && left.it_value.tv_nsec > 0 && left.it_value.tv_nsec <= PART);
	set(timer, PART, 0);
	start = now(CLOCK_THREAD_CPUTIME_ID);
	while (!alarms)
		;
	CHECK(now(CLOCK_THREAD_CPUTIME_ID) - start >= PART);
	CHECK_EQ(alarms, 1);
	/* Again and again. */
	set(timer, PART / 4, PART / 4);
	while (alarms < 4)
		;
	CHECK(now(CLOCK_THREAD_CPUTIME_ID) - start >= PART + PART / 2);
	CHECK_EQ(timer_delete(timer), 0);
	alarms = 0;
}

static void of_another_thread(void)
{
	timer_t timer = timer_on(clock_of_other);
	long long start = now(clock_of_other);

	set(timer, PART, 0);
	while (!alarms)
		nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	CHECK(now(clock_of_other) - start >= PART);
	CHECK_EQ(timer_delete(timer), 0);
	alarms = 0;
}

static void sleeps(void)
{
	struct timespec part = { 0, PART }, left = { 7, 7 }, until;
	timer_t timer;
	clockid_t own;
	long long start = now(CLOCK_PROCESS_CPUTIME_ID);

	CHECK_EQ(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &part, NULL), 0);
	CHECK(now(CLOCK_PROCESS_CPUTIME_ID) - start >= PART);
	start = now(clock_of_other);
	CHECK_EQ(clock_nanosleep(clock_of_other, 0, &part, NULL), 0);
	CHECK(now(clock_of_other) - start >= PART);
	start = now(CLOCK_PROCESS_CPUTIME_ID) + PART;
	until = (struct timespec){ start / 1000000000, start % 1000000000 };
	CHECK_EQ(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &until, NULL), 0);
	CHECK(now(CLOCK_PROCESS_CPUTIME_ID) >= start);
	CHECK_EQ(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, TIMER_ABSTIME, &(struct timespec){ 0, 1 }, NULL), 0);

	/* Nobody waits for himself to work. */
	CHECK_EQ(clock_nanosleep(CLOCK_THREAD_CPUTIME_ID, 0, &part, NULL), EINVAL);
	CHECK_EQ(pthread_getcpuclockid(pthread_self(), &own), 0);
	CHECK_EQ(clock_nanosleep(own, 0, &part, NULL), EINVAL);
	part.tv_nsec = 1000000000;
	CHECK_EQ(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &part, NULL), EINVAL);

	/* A handler ends it. */
	timer = timer_on(CLOCK_MONOTONIC);
	set(timer, PART, 0);
	part = (struct timespec){ 1000, 0 };
	CHECK_EQ(clock_nanosleep(CLOCK_PROCESS_CPUTIME_ID, 0, &part, &left), EINTR);
	CHECK(left.tv_sec >= 900 && left.tv_sec <= 1000);
	CHECK_EQ(alarms, 1);
	alarms = 0;
	CHECK_EQ(timer_delete(timer), 0);
}

int main(void)
{
	struct sigaction act = { .sa_handler = note };
	pthread_t thread;
	timer_t timer;
	sigset_t set;

	alarm(60);
	sigaction(SIGUSR1, &act, NULL);
	/* The burning thread is not to be interrupted. */
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	NEED(pthread_create(&thread, NULL, burns, NULL) == 0);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
	CHECK_EQ(pthread_getcpuclockid(thread, &clock_of_other), 0);
	of_another_thread();
	sleeps();
	busy = 0;
	pthread_join(thread, NULL);
	of_this_thread();
	CHECK_ERRNO(timer_create(CLOCK_MONOTONIC_RAW, NULL, &timer), EOPNOTSUPP);
	CHECK_ERRNO(timer_create(clock_of_other, NULL, &timer), EINVAL);
	CHECK_ERRNO(timer_create(99, NULL, &timer), EINVAL);
	return check_done();
}
