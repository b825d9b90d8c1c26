/* A signal that a process sends to itself, and its handler. */
#include "bench.h"

#include <signal.h>
#include <unistd.h>

#define LOOPS 200000

static volatile sig_atomic_t handled;

static void handle(int signal)
{
	handled += signal == SIGUSR1;
}

int main(void)
{
	struct sigaction action = { .sa_handler = handle };
	pid_t self = getpid();

	if (sigaction(SIGUSR1, &action, 0))
		bench_die("sigaction");
	kill(self, SIGUSR1);
	if (handled != 1)
		bench_skip("handlers do not run");
	long long start = gettimens();

	for (long i = 0; i < LOOPS; i++)
		kill(self, SIGUSR1);
	emit_since("Signal", 0, LOOPS, start);
	bench_expect("handled", (unsigned long long)handled, LOOPS + 1);
	return 0;
}
