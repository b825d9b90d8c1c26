/* Handlers that interrupt computation: results are right, thread-local storage is the thread's own,
 * nested signals come. */
#include "../check.h"
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t seen, stop, inside;
static _Thread_local int mine;
static pthread_t spinner;
static volatile int ready;

static void count(int sig)
{
	char page[3000];
	memset(page, sig, sizeof page);
	seen += page[sig] == sig;
	mine++;
	CHECK(pthread_equal(pthread_self(), spinner));
}

static void finish(int sig)
{
	(void)sig;
	stop = 1;
}

static void slow(int sig)
{
	int before = seen;
	(void)sig;
	inside = 1;
	/* SIGUSR1 interrupts this. */
	while (seen == before)
		;
	stop = 1;
}

static unsigned long long compute(void)
{
	unsigned long long x = 88172645463325252ull, sum = 0;
	for (int i = 0; i < 2000000; i++) {
		x ^= x << 13;
		x ^= x >> 7;
		x ^= x << 17;
		sum += x * (i % 7);
	}
	return sum;
}

static void *spin(void *result)
{
	unsigned long long first;
	int rounds = 0;

	mine = 1000;
	first = compute();
	ready = 1;
	while (!stop && rounds < 100000) {
		CHECK_EQ(compute(), first);
		rounds++;
	}
	*(int *)result = mine;
	return 0;
}

static void nap(void)
{
	nanosleep(&(struct timespec){ 0, 2000000 }, 0);
}

int main(void)
{
	struct sigaction sa = { .sa_handler = count };
	int local, sent = 0;

	NEED(sigaction(SIGUSR1, &sa, 0) == 0);
	sa.sa_handler = finish;
	NEED(sigaction(SIGUSR2, &sa, 0) == 0);
	sa.sa_handler = slow;
	NEED(sigaction(SIGHUP, &sa, 0) == 0);
	NEED(pthread_create(&spinner, 0, spin, &local) == 0);
	while (!ready)
		nap();
	for (; sent < 100; sent++) {
		int before = seen;
		CHECK_EQ(pthread_kill(spinner, SIGUSR1), 0);
		for (int i = 0; seen == before && i < 2000; i++)
			nanosleep(&(struct timespec){ 0, 100000 }, 0);
		CHECK_EQ(seen, before + 1);
	}
	CHECK_EQ(pthread_kill(spinner, SIGUSR2), 0);
	CHECK_EQ(pthread_join(spinner, 0), 0);
	CHECK_EQ(local, 1000 + sent);

	stop = ready = 0;
	NEED(pthread_create(&spinner, 0, spin, &local) == 0);
	while (!ready)
		nap();
	CHECK_EQ(pthread_kill(spinner, SIGHUP), 0);
	while (!inside)
		nap();
	CHECK_EQ(pthread_kill(spinner, SIGUSR1), 0);
	CHECK_EQ(pthread_join(spinner, 0), 0);
	CHECK_EQ(local, 1001);
	return check_done();
}
