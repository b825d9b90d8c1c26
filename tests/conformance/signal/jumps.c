/* siglongjmp out of handlers that interrupt computation, to functions further up; again and again,
 * nested, from a timer. */
#include "../check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

static sigjmp_buf outer, inner;
static volatile int phase, stop;
static volatile unsigned long turns;

static void leave(int sig)
{
	if (phase == 1)
		siglongjmp(outer, sig);
	/* Interrupted while it computes itself. */
	phase = 1;
	for (;;)
		turns++;
}

static void leave_inner(int sig)
{
	siglongjmp(inner, sig);
}

static void tick(int microseconds, int interval)
{
	struct itimerval timer = { .it_value = { 0, microseconds }, .it_interval = { 0, interval } };
	NEED(setitimer(ITIMER_REAL, &timer, 0) == 0);
}

/* In a function of its own, the timer too: an exception leaves functions by their calls only. */
static __attribute__((noinline)) void spin(int microseconds, int interval)
{
	tick(microseconds, interval);
	while (!stop)
		turns++;
}

static __attribute__((noinline)) unsigned long deep(int depth)
{
	unsigned long below;
	if (!depth) {
		spin(1000, 0);
		return 0;
	}
	below = deep(depth - 1);
	turns += depth;
	return below + turns;
}

static __attribute__((noinline)) int guarded(void)
{
	int came = sigsetjmp(inner, 1);
	if (!came)
		deep(20);
	return came;
}

/* Arguments that do not fit into registers: the caller's frame ends differently. */
static unsigned long many(int a, int b, int c, int d, int e, int f, int g, int h)
{
	return turns + a + b + c + d + e + f + g + h;
}

/* A pointer that the compiler knows nothing of: it would leave out arguments that never change. */
static unsigned long (*volatile call)(int, int, int, int, int, int, int, int) = many;

static __attribute__((noinline)) int beside_many(void)
{
	int came = sigsetjmp(inner, 1);
	if (!came) {
		tick(60, 0);
		for (;;)
			turns = call(1, 2, 3, 4, 5, 6, 7, 8);
	}
	return came;
}

int main(void)
{
	struct sigaction sa = { .sa_handler = leave, .sa_flags = SA_NODEFER };
	volatile int i;
	sigset_t mask;
	int came;

	NEED(sigaction(SIGALRM, &sa, 0) == 0);
	for (i = 0; i < 50; i++) {
		phase = 1;
		came = sigsetjmp(outer, 1);
		if (!came) {
			spin(2000, 0);
		}
		CHECK_EQ(came, SIGALRM);
		sigprocmask(SIG_BLOCK, 0, &mask);
		CHECK(!sigismember(&mask, SIGALRM));
	}
	/* A handler that is interrupted by another one that leaves both. */
	phase = 0;
	came = sigsetjmp(outer, 1);
	if (!came) {
		spin(2000, 20000);
	}
	tick(0, 0);
	CHECK_EQ(came, SIGALRM);
	CHECK_EQ(phase, 1);

	sa.sa_handler = leave_inner;
	sa.sa_flags = 0;
	NEED(sigaction(SIGALRM, &sa, 0) == 0);
	for (i = 0; i < 50; i++) {
		CHECK_EQ(guarded(), SIGALRM);
	}
	for (i = 0; i < 4000; i++) {
		CHECK_EQ(beside_many(), SIGALRM);
	}
	return check_done();
}
