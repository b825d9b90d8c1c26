/* Signals with handlers that make calls, nest, restart calls and end waits; a child ended by a
 * signal; a computation that is interrupted. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t ticks, ended, nested, queued;

static void on_alarm(int number)
{
	struct timespec now;

	(void)number;
	clock_gettime(CLOCK_MONOTONIC, &now);
	ticks++;
	if (ticks == 3) {
		nested++;
		raise(SIGUSR1);
		nested--;
	}
}

static void on_user(int number)
{
	(void)number;
	printf("user signal within %d handlers, tick %d\n", (int)nested, (int)ticks);
}

static void on_child(int number, siginfo_t *info, void *context)
{
	int status;

	(void)number;
	(void)context;
	printf("a child, %d\n", info->si_pid);
	while (waitpid(-1, &status, WNOHANG) > 0)
		ended++;
}

static void on_queued(int number)
{
	(void)number;
	queued++;
}

/* Many handlers that make no call start when one call returns. */
static void all_at_once(void)
{
	struct sigaction count = { .sa_handler = on_queued };
	union sigval value = { 0 };
	sigset_t chosen, before;

	sigaction(SIGRTMIN, &count, NULL);
	sigemptyset(&chosen);
	sigaddset(&chosen, SIGRTMIN);
	sigprocmask(SIG_BLOCK, &chosen, &before);
	for (int i = 0; i < 300; i++)
		sigqueue(getpid(), SIGRTMIN, value);
	sigprocmask(SIG_SETMASK, &before, NULL);
	printf("%d queued\n", (int)queued);
}

static void every(int microseconds)
{
	struct itimerval timer = { { 0, microseconds }, { 0, microseconds } };

	setitimer(ITIMER_REAL, &timer, NULL);
}

int main(void)
{
	struct sigaction alarm = { .sa_handler = on_alarm }, user = { .sa_handler = on_user },
			 child = { .sa_sigaction = on_child, .sa_flags = SA_SIGINFO | SA_RESTART };
	volatile unsigned long turns = 0;
	sigset_t chosen, before;
	char byte;
	int pipes[2], interrupted = 0, status;
	pid_t pid;

	sigaction(SIGALRM, &alarm, NULL);
	sigaction(SIGUSR1, &user, NULL);
	sigaction(SIGCHLD, &child, NULL);
	pipe(pipes);
	every(2000);
	while (ticks < 20) {
		for (int i = 0; i < 100000; i++)
			turns++;
		if (read(pipes[0], &byte, 1) < 0 && errno == EINTR)
			interrupted++;
	}
	every(0);
	printf("%d ticks, interrupted %d times\n", (int)ticks, interrupted);
	sigemptyset(&chosen);
	sigaddset(&chosen, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chosen, &before);
	for (int i = 0; i < 4; i++)
		if (!fork()) {
			usleep(1000 * (unsigned)i);
			_exit(0);
		}
	while (ended < 4)
		sigsuspend(&before);
	sigprocmask(SIG_SETMASK, &before, NULL);
	signal(SIGCHLD, SIG_DFL);
	if (!(pid = fork()))
		for (;;)
			turns++;
	kill(pid, SIGTERM);
	waitpid(pid, &status, 0);
	printf("the last one by signal %d\n", WTERMSIG(status));
	if (!(pid = fork()))
		abort();
	waitpid(pid, &status, 0);
	printf("aborted by signal %d\n", WTERMSIG(status));
	all_at_once();
	return 0;
}
