/* A file `log` with text in it and a name `none` that is not there are /dev/null. argv: nothing, or
 * how many threads write at once. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "../check.h"

static int size_of(const char *path)
{
	char text[64];
	int fd = open(path, O_RDONLY), n;

	if (fd < 0)
		return -1;
	n = (int)read(fd, text, sizeof text);
	close(fd);
	return n;
}

static int writes(int dir, const char *path, int flags)
{
	int fd = openat(dir, path, flags, 0600), n;

	if (fd < 0)
		return -1;
	n = (int)write(fd, "lost", 4);
	close(fd);
	return n;
}

static void *many(void *arg)
{
	for (int i = 0; i < 100; i++) {
		if (writes(AT_FDCWD, i % 2 ? "log" : "to-log", O_WRONLY | O_TRUNC) != 4 ||
		    writes(AT_FDCWD, "none", O_WRONLY | O_CREAT) != 4)
			wrong = 1;
		/* `swap` is the log or a file that may be written. */
		syscall(SYS_renameat2, AT_FDCWD, "swap", AT_FDCWD, "paws", 2);
		writes(AT_FDCWD, "swap", O_WRONLY | O_TRUNC);
		if (writes(AT_FDCWD, "other", O_WRONLY | O_APPEND) != 4)
			wrong = 1;
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t threads[16];
	char name[64];
	struct stat st;
	int dir = open(".", O_RDONLY | O_DIRECTORY), fd;

	if (argc > 1) {
		for (int i = 0; i < 16; i++)
			IS(pthread_create(&threads[i], NULL, many, NULL), 0);
		for (int i = 0; i < 16; i++)
			IS(pthread_join(threads[i], NULL), 0);
		IS(stat("other", &st), 0);
		IS(st.st_size, 16 * 100 * 4 + 6);
		return wrong;
	}
	IS(size_of("log"), 0);
	IS(writes(AT_FDCWD, "log", O_WRONLY), 4);
	IS(writes(AT_FDCWD, "log", O_WRONLY | O_TRUNC), 4);
	IS(writes(AT_FDCWD, "log", O_RDWR | O_APPEND | O_CREAT), 4);
	IS(writes(AT_FDCWD, "none", O_WRONLY | O_CREAT), 4);
	IS(writes(AT_FDCWD, "to-log", O_WRONLY | O_TRUNC), 4);
	IS(writes(AT_FDCWD, "d/../log", O_WRONLY | O_TRUNC), 4);
	IS(writes(dir, "log", O_WRONLY | O_TRUNC), 4);
	IS(size_of("log"), 0);
	IS(stat("log", &st) || !S_ISCHR(st.st_mode), 0);
	IS(stat("none", &st) || !S_ISCHR(st.st_mode), 0);
	IS(access("none", R_OK | W_OK), 0);
	FAILS(open("log", O_CREAT | O_EXCL | O_WRONLY, 0600), EEXIST);
	FAILS(open("log", O_RDONLY | O_DIRECTORY), ENOTDIR);
	FAILS(open("log/x", O_RDONLY), ENOTDIR);
	FAILS(truncate("log", 0), EINVAL);
	FAILS(unlink("log"), EBUSY);
	FAILS(rename("log", "moved"), EBUSY);
	FAILS(rename("other", "log"), EBUSY);
	FAILS(link("log", "linked"), EXDEV);
	FAILS(mkdir("none", 0700), EEXIST);
	FAILS(chmod("log", 0600), EPERM);
	fd = open("log", O_RDONLY);
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	IS(size_of(name), 0);
	IS(size_of("other"), 6);
	return wrong;
}
