/* Changes a name after race_grate has judged it, and says what was opened. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static char name[] = "/tmp/race-open";

static void *change(void *unused)
{
	syscall(SYS_getppid);
	strcpy(name, "/tmp/race-shut");
	syscall(SYS_getpgrp);
	return unused;
}

static void make(const char *path, const char *text)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);

	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		puts("cannot make a file");
	close(fd);
}

int main(void)
{
	char text[16] = "";
	pthread_t other;
	int fd;

	make("/tmp/race-open", "harmless");
	make("/tmp/race-shut", "secret");
	pthread_create(&other, NULL, change, NULL);
	fd = openat(AT_FDCWD, name, O_RDONLY);
	pthread_join(other, NULL);
	if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
		strcpy(text, "nothing");
	puts(text);
	unlink("/tmp/race-open");
	unlink("/tmp/race-shut");
	return 0;
}
