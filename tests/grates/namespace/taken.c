/*
 * taken IN: one thread opens /dev/null again and again. Another puts a file of the directory IN at
 * the number that the first one gets, as soon as it has it, by dup2, and a third writes to what is
 * there. The grates inside refuse pwrite: says whether the file was ever written to, and whether
 * writes elsewhere worked.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static atomic_int done, worked;
static int number, file;

static int need(int fd)
{
	if (fd < 0) {
		perror("taken");
		exit(1);
	}
	return fd;
}

static void *put(void *unused)
{
	while (!atomic_load(&done)) {
		dup2(file, number);
		close(number);
	}
	return unused;
}

static void *write_to(void *unused)
{
	while (!atomic_load(&done))
		worked |= pwrite(number, "x", 1, 0) == 1;
	return unused;
}

int main(int argc, char **argv)
{
	pthread_t threads[2];
	time_t start = time(NULL);
	struct stat st;
	char name[128];

	snprintf(name, sizeof name, "%s/file", argv[1]);
	file = need(open(name, O_WRONLY | O_CREAT, 0600));
	number = need(dup(file));
	close(number);
	pthread_create(&threads[0], NULL, put, NULL);
	pthread_create(&threads[1], NULL, write_to, NULL);
	/* As far as it gets: who is kept from the processor while it changes a number keeps others
	 * waiting. */
	for (int i = 0; i < 20000 && time(NULL) < start + 20; i++) {
		int fd = open("/dev/null", O_WRONLY);

		if (fd >= 0 && fd != number)
			close(fd);
	}
	atomic_store(&done, 1);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	need(fstat(file, &st));
	printf("%s, %s elsewhere\n", st.st_size ? "written" : "untouched", worked ? "written" : "nothing written");
	return argc != 2;
}
