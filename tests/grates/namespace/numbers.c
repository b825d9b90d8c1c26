/*
 * numbers IN: one thread keeps changing what is at a number, between /dev/null and IN, by close and
 * open, dup2, and messages; others write to that number. The grates inside refuse pwrite: says
 * whether IN was ever written to, and whether writes elsewhere worked.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROUNDS 3000

static atomic_int done, number, worked;
static int way;

static void *writer(void *unused)
{
	(void)unused;
	while (!atomic_load(&done)) {
		ssize_t r = pwrite(atomic_load(&number), "x", 1, 0);

		if (r == 1)
			atomic_fetch_add(&worked, 1);
	}
	return NULL;
}

static int need(int fd)
{
	if (fd < 0) {
		perror("numbers");
		exit(1);
	}
	return fd;
}

static void change(const char *in)
{
	int null = need(open("/dev/null", O_WRONLY)), file;

	atomic_store(&number, null);
	for (int i = 0; i < ROUNDS; i++) {
		if (way == 0) {
			/* The file gets the number that was free. */
			close(null);
			file = need(open(in, O_WRONLY));
			close(file);
			null = need(open("/dev/null", O_WRONLY));
			atomic_store(&number, null);
		} else {
			file = need(open(in, O_WRONLY));
			need(way == 1 ? dup2(file, null) : dup3(file, null, O_CLOEXEC));
			close(file);
			file = need(open("/dev/null", O_WRONLY));
			need(dup2(file, null));
			close(file);
		}
	}
	close(null);
}

int main(int argc, char **argv)
{
	pthread_t threads[3];
	struct stat st;

	(void)argc;
	if (pwrite(need(open(argv[1], O_WRONLY)), "x", 1, 0) != -1)
		return 2;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, writer, NULL);
	for (way = 0; way < 3; way++)
		change(argv[1]);
	atomic_store(&done, 1);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	if (stat(argv[1], &st))
		return 3;
	printf("%s, %s elsewhere\n", st.st_size ? "written" : "untouched",
	    atomic_load(&worked) ? "written" : "nothing written");
	return 0;
}
