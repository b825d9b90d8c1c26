/*
 * A shell of sorts: a child in a group of its own, which goes into a handler that does not return
 * and is killed there. Says how many SIGINTs it got, after two of them.
 */
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile sig_atomic_t got;

static void count(int signal)
{
	(void)signal;
	got++;
}

int main(void)
{
	int ready[2];
	pid_t child;
	char byte;

	signal(SIGINT, count);
	if (pipe(ready) || (child = fork()) < 0)
		return 1;
	if (!child) {
		setpgid(0, 0);
		if (write(ready[1], "x", 1) != 1)
			_exit(1);
		_exit(syscall(SYS_getpgid, 1) != 0);
	}
	if (read(ready[0], &byte, 1) != 1)
		return 1;
	usleep(200000);
	kill(child, SIGKILL);
	puts("in");
	fflush(stdout);
	while (got < 2)
		usleep(10000);
	printf("got %d\n", (int)got);
	fflush(stdout);
	_exit(0);
}
