/*
 * The client of routes_grate.c.
 *
 *	routes [PAST]		what a read says that the kernel sends past the grate nearest to us
 *	routes death GRATE	starts GRATE in front of this, and looks what is left when it has ended
 */
#define _GNU_SOURCE
#include "../check.h"
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int past, toggling = 1, fd;
static char byte;

static long word(int value, int of)
{
	return syscall(SYS_getpriority, value, of);
}

static void *toggle(void *unused)
{
	(void)unused;
	for (int i = 0; __atomic_load_n(&toggling, __ATOMIC_RELAXED); i++)
		word(i & 1, fd);
	return NULL;
}

static void racing(void)
{
	pthread_t other;
	int here = 0, there = 0;

	pthread_create(&other, NULL, toggle, NULL);
	/* On a busy machine the other thread may not run for long. Without an end, should one of them
	 * never be seen. */
	for (int i = 0; i < 20000 || !here || !there; i++) {
		ssize_t got = read(fd, &byte, 0);

		here += got == 1000;
		there += got == past;
		IS(got == 1000 || got == past, 1);
	}
	__atomic_store_n(&toggling, 0, __ATOMIC_RELAXED);
	pthread_join(other, NULL);
}

/* Calls that a dead grate handled do not go past it. */
static void survive(int to)
{
	word(0, fd);
	IS(read(fd, &byte, 1), 0);
	word(99, 0);
	FAILS(read(fd, &byte, 1), EIO);
	FAILS(pread(fd, &byte, 1, 0), EIO);
	write(to, wrong ? "!" : ".", 1);
}

static void outlive(char *self, char *grate)
{
	char number[16], *argv[] = { grate, self, "survive", number, NULL };
	int ends[2];
	pid_t pid;

	IS(pipe(ends), 0);
	snprintf(number, sizeof number, "%d", ends[1]);
	IS(posix_spawn(&pid, grate, NULL, NULL, argv, (char *[]){ NULL }), 0);
	close(ends[1]);
	IS(read(ends[0], &byte, 1), 1);
	IS(byte, '.');
	waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	int status, copy;

	if (argc == 3 && !strcmp(argv[1], "death")) {
		outlive(argv[0], argv[2]);
		return wrong;
	}
	past = argc > 1 ? atoi(argv[1]) : 0;
	fd = open("/dev/null", O_RDONLY);
	IS(fd >= 0, 1);
	if (argc == 3) {
		survive(atoi(argv[2]));
		return wrong;
	}
	IS(word(97, 0), 0);
	/* By the word, whatever else is in it; by 32 bits of the argument. */
	IS(read(fd, &byte, 1), 1000);
	word(2, fd);
	IS(read(fd, &byte, 1), past);
	IS(syscall(SYS_read, fd, &byte, 1), past);
	IS(pread(fd, &byte, 1, 0), 1000);
	word(3, fd);
	IS(read(fd, &byte, 1), 1000);
	/* The number is what counts, and one without a word enters. */
	word(0, fd);
	copy = dup(fd);
	IS(read(copy, &byte, 1), 1000);
	IS(read(fd, &byte, 1), past);
	IS(read(-1, &byte, 1), 1000);
	IS(read(64, &byte, 1), 1000);
	/* A child has words of its own, also in its first call. */
	if (fork() == 0)
		_exit(read(fd, &byte, 1) != 1000 || word(0, fd) || read(fd, &byte, 1) != past || word(97, 0));
	IS(wait(&status) > 0 && status == 0, 1);
	IS(read(fd, &byte, 1), past);
	racing();
	/* A descriptor that the grate gives has the lowest free number here, and the kernel knows it by
	 * that number. */
	copy = dup(fd);
	close(copy);
	IS(word(95, 0), copy);
	IS(fcntl(copy, F_GETFD), 0);
	IS(word(96, 0), copy + 1);
	IS(fcntl(copy + 1, F_GETFD), FD_CLOEXEC);
	IS(write(copy, "", 0), 0);
	FAILS(word(95, 1), EBADF);
	/* Where the grate has no memory any more. */
	word(0, fd);
	IS(word(98, 0), 0);
	IS(read(fd, &byte, 1), 1000);
	return wrong;
}
