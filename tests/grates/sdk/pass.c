/*
 * Calls that the grate in front lets go on: `pass` makes some, `pass MILLISECONDS` ends the grate
 * while a thread waits in read. `pass run COMMAND...` starts a grate and outlives it, as what is
 * left of a chain is over with its first program.
 */
#include <errno.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int ends[2];

static void *reader(void *got)
{
	char byte;

	*(int *)got = read(ends[0], &byte, 1) == 1 ? 0 : errno;
	return NULL;
}

static int calls(void)
{
	char byte[2];

	if (pipe(ends) || write(ends[1], "ab", 2) != 2 || read(ends[0], byte, 2) != 2 || memcmp(byte, "ab", 2))
		return 1;
	if (read(-1, byte, 2) != -1 || errno != EBADF)
		return 2;
	return (pid_t)geteuid() == getpid() ? 0 : 3;
}

static int run(char **command)
{
	extern char **environ;
	int out[2];
	char text[64];
	ssize_t n;
	pid_t child;

	if (pipe(out) || dup2(out[1], 1) != 1 || posix_spawn(&child, command[0], NULL, NULL, command, environ))
		return 1;
	close(out[1]);
	close(1);
	while ((n = read(out[0], text, sizeof text)) > 0)
		write(2, text, (size_t)n);
	return n != 0;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	int got = -1;

	if (argc < 2)
		return calls();
	if (!strcmp(argv[1], "run"))
		return run(argv + 2);
	if (pipe(ends) || pthread_create(&thread, NULL, reader, &got))
		return 1;
	while (!getpgrp())
		usleep(1000);
	usleep((unsigned)atoi(argv[1]) * 1000);
	getsid(0);
	if (write(ends[1], "a", 1) != 1 || pthread_join(thread, NULL))
		return 1;
	puts(got ? strerror(got) : "read");
	return 0;
}
