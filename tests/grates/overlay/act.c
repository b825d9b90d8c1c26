/*
 * Does what its arguments say, one after the other, and prints what came of it: act OPERATION
 * ARGUMENT... [, OPERATION ARGUMENT...]... An operation that fails prints the name of its error.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define MOST 4000

static const char *name_of_error(void)
{
	static const struct {
		int number;
		const char *name;
	} names[] = {
		{ ENOENT, "ENOENT" },
		{ EACCES, "EACCES" },
		{ EEXIST, "EEXIST" },
		{ ENOTEMPTY, "ENOTEMPTY" },
		{ ENOTDIR, "ENOTDIR" },
		{ EISDIR, "EISDIR" },
		{ ELOOP, "ELOOP" },
		{ EIO, "EIO" },
		{ ENOSPC, "ENOSPC" },
		{ EPERM, "EPERM" },
		{ EXDEV, "EXDEV" },
		{ ENAMETOOLONG, "ENAMETOOLONG" },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (names[i].number == errno)
			return names[i].name;
	return strerror(errno);
}

static long long number(const char *text)
{
	return strtoll(text, NULL, 0);
}

static int put_at(char **a, int flags)
{
	int fd = open(a[0], O_WRONLY | flags, 0644), r;

	if (fd < 0)
		return -1;
	r = pwrite(fd, a[2], strlen(a[2]), number(a[1])) == (ssize_t)strlen(a[2]) ? 0 : -1;
	return close(fd) ? -1 : r;
}

static int do_write(char **a)
{
	return put_at(a, 0);
}

static int do_make(char **a)
{
	return put_at(a, O_CREAT | O_EXCL);
}

static int do_append(char **a)
{
	int fd = open(a[0], O_WRONLY | O_APPEND), r;

	if (fd < 0)
		return -1;
	r = write(fd, a[1], strlen(a[1])) < 0 ? -1 : 0;
	close(fd);
	return r;
}

/* Prints the bytes at an offset: dots for zeros. */
static int do_read(char **a)
{
	char bytes[MOST];
	int fd = open(a[0], O_RDONLY);
	ssize_t got = fd < 0 ? -1 : pread(fd, bytes, (size_t)number(a[2]), number(a[1]));

	for (ssize_t i = 0; i < got; i++)
		putchar(bytes[i] ? bytes[i] : '.');
	if (got >= 0)
		putchar('\n');
	if (fd >= 0)
		close(fd);
	return got < 0 ? -1 : 0;
}

/* A sum over all of a file, read in pieces. */
static int do_sum(char **a)
{
	static unsigned char bytes[100000];
	int fd = open(a[0], O_RDONLY);
	unsigned long sum = 0;
	long size = 0;
	ssize_t got = -1;

	while (fd >= 0 && (got = read(fd, bytes, sizeof bytes)) > 0) {
		for (ssize_t i = 0; i < got; i++)
			sum = (sum * 31 + bytes[i]) & 0xffffffff;
		size += got;
	}
	if (fd < 0 || got < 0)
		return -1;
	printf("%ld %lu\n", size, sum);
	return close(fd);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int do_list(char **a)
{
	char *names[MOST];
	int count = 0;
	DIR *dir = opendir(a[0]);
	struct dirent *e;

	if (!dir)
		return -1;
	while ((e = readdir(dir)) && count < MOST)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			names[count++] = strdup(e->d_name);
	closedir(dir);
	qsort(names, (size_t)count, sizeof *names, by_name);
	for (int i = 0; i < count; i++)
		printf("%s%s", i ? " " : "", names[i]);
	putchar('\n');
	return 0;
}

/* How many names one sees who removes half of them on the way, which is how many there were. */
static int do_thin(char **a)
{
	char path[MOST];
	int seen = 0;
	DIR *dir = opendir(a[0]);
	struct dirent *e;

	if (!dir)
		return -1;
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.' && seen++ % 2) {
			snprintf(path, sizeof path, "%s/%s", a[0], e->d_name);
			if (unlink(path))
				return -1;
		}
	printf("%d\n", seen);
	return closedir(dir);
}

static int do_stat(char **a)
{
	struct stat st;

	if (lstat(a[0], &st))
		return -1;
	printf("%o %lu links, %lld bytes\n", st.st_mode, (unsigned long)st.st_nlink,
	    S_ISDIR(st.st_mode) ? 0LL : (long long)st.st_size);
	return 0;
}

static int do_ino(char **a)
{
	struct stat st;

	if (lstat(a[0], &st))
		return -1;
	printf("%llu\n", (unsigned long long)st.st_ino);
	return 0;
}

static int do_same(char **a)
{
	struct stat one, other;

	if (stat(a[0], &one) || stat(a[1], &other))
		return -1;
	puts(one.st_ino == other.st_ino ? "same" : "different");
	return 0;
}

/* A store to a shared mapping. */
static int do_map(char **a)
{
	long long off = number(a[1]), start = off / 4096 * 4096;
	size_t length = (size_t)(off - start) + strlen(a[2]);
	int fd = open(a[0], O_RDWR);
	char *at = fd < 0 ? MAP_FAILED : mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, fd, start);

	if (at == MAP_FAILED)
		return -1;
	memcpy(at + (off - start), a[2], strlen(a[2]));
	munmap(at, length);
	return close(fd);
}

/* A file without a name gets one. */
static int do_unnamed(char **a)
{
	char path[40];
	int fd = open(a[0], O_TMPFILE | O_RDWR, 0600);

	if (fd < 0 || write(fd, a[2], strlen(a[2])) < 0)
		return -1;
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return linkat(AT_FDCWD, path, AT_FDCWD, a[1], AT_SYMLINK_FOLLOW) ? -1 : close(fd);
}

static int do_punch(char **a)
{
	int fd = open(a[0], O_RDWR), r;

	if (fd < 0)
		return -1;
	r = fallocate(fd, 3 /* FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE */, number(a[1]), number(a[2]));
	return close(fd) ? -1 : r;
}

static int do_zero(char **a)
{
	int fd = open(a[0], O_RDWR), r;

	if (fd < 0)
		return -1;
	r = fallocate(fd, 16 /* FALLOC_FL_ZERO_RANGE */, number(a[1]), number(a[2]));
	return close(fd) ? -1 : r;
}

/* Where data are: first byte, and the one behind the last. */
static int do_data(char **a)
{
	int fd = open(a[0], O_RDONLY);
	off_t start, end = 0;

	if (fd < 0)
		return -1;
	while ((start = lseek(fd, end, SEEK_DATA)) >= 0 && (end = lseek(fd, start, SEEK_HOLE)) >= 0)
		printf("%lld-%lld ", (long long)start, (long long)end);
	putchar('\n');
	return close(fd);
}

/* A write that is kept without fsync. */
static int do_keep(char **a)
{
	return put_at(a, O_DSYNC);
}

/* Bytes until no more fit, and what fsync says then. */
static int do_fill(char **a)
{
	static char bytes[65536];
	int fd = open(a[0], O_WRONLY | O_CREAT, 0644);
	long long left = number(a[1]);

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (char)(i * 31 >> 3 | 1);
	while (left > 0 && write(fd, bytes, sizeof bytes) == (ssize_t)sizeof bytes)
		left -= (long long)sizeof bytes;
	return fd < 0 || fsync(fd) ? -1 : close(fd);
}

/* Writes 64 KiB at an offset, of which a page only is in memory. */
static int do_fault(char **a)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open(a[0], O_WRONLY);

	if (fd < 0 || pages == MAP_FAILED || munmap(pages + 4096, 4096))
		return -1;
	memset(pages, 'x', 4096);
	printf("%d\n", (int)pwrite(fd, pages, 65536, number(a[1])));
	return close(fd);
}

/* Shows a file to a process that had it open before another process wrote to it. */
static int do_watch(char **a)
{
	char bytes[MOST] = "";
	int fd = open(a[0], O_RDONLY), status = 0;
	pid_t child;

	if (fd < 0 || pread(fd, bytes, 5, 0) < 0 || (child = fork()) < 0)
		return -1;
	if (!child)
		_exit(do_write((char *[]){ a[0], "0", a[1] }) ? 1 : 0);
	waitpid(child, &status, 0);
	if (status || pread(fd, bytes, strlen(a[1]), 0) < 0)
		return -1;
	puts(bytes);
	return close(fd);
}

/* Prints the events that one instance of inotify reports for two directories, one of them maybe
 * outside, in which names are made by turns. */
static int do_hear(char **a)
{
	char buffer[1024] __attribute__((aligned(8))), path[MOST];
	int fd = inotify_init1(IN_CLOEXEC), one = inotify_add_watch(fd, a[0], IN_CREATE),
	    other = inotify_add_watch(fd, a[1], IN_CREATE), heard = 0;

	if (one < 0 || other < 0 || one == other)
		return -1;
	for (int i = 0; i < 4; i++) {
		snprintf(path, sizeof path, "%s/%d", a[i % 2], i);
		if (mkdir(path, 0755))
			return -1;
	}
	while (heard < 4) {
		struct pollfd ready = { .fd = fd, .events = POLLIN };
		ssize_t got = poll(&ready, 1, 10000) == 1 ? read(fd, buffer, 40) : -1;

		if (got < 0)
			return -1;
		for (char *at = buffer; at < buffer + got;
		    at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len, heard++)
			printf("%s:%s ", ((struct inotify_event *)at)->wd == one ? a[0] : a[1],
			    ((struct inotify_event *)at)->name);
	}
	putchar('\n');
	return close(fd);
}

static int do_link_text(char **a)
{
	char target[MOST];
	ssize_t length = readlink(a[0], target, sizeof target - 1);

	if (length < 0)
		return -1;
	printf("%.*s\n", (int)length, target);
	return 0;
}

static int do_sync(char **a)
{
	int fd = open(a[0], O_RDONLY);

	return fd < 0 || fsync(fd) ? -1 : close(fd);
}

/* A little, for somebody outside to do something. */
static int do_wait(char **a)
{
	fflush(stdout);
	return usleep((useconds_t)number(a[0]) * 1000);
}

/* Until a file begins with a text, which somebody outside writes. */
static int do_until(char **a)
{
	char bytes[MOST];

	fflush(stdout);
	for (int i = 0; i < 1000; i++) {
		int fd = open(a[0], O_RDONLY);
		ssize_t got = fd < 0 ? 0 : read(fd, bytes, strlen(a[1]));

		if (fd >= 0)
			close(fd);
		if (got == (ssize_t)strlen(a[1]) && !memcmp(bytes, a[1], (size_t)got))
			return 0;
		usleep(10000);
	}
	errno = ETIMEDOUT;
	return -1;
}

/* This program, from there. */
static int do_run(char **a)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	if (!(child = fork())) {
		execl(a[0], a[0], "say", "there", ",", "append", a[0], "x", NULL);
		_exit(errno);
	}
	waitpid(child, &status, 0);
	errno = WEXITSTATUS(status);
	return errno ? -1 : 0;
}

/* That file, by a descriptor. */
static int do_run_open(char **a)
{
	int status = 0, fd = open(a[0], O_RDONLY);
	char *argv[] = { a[0], NULL };
	pid_t child;

	if (fd < 0)
		return -1;
	fflush(stdout);
	if (!(child = fork())) {
		fexecve(fd, argv, environ);
		_exit(errno);
	}
	close(fd);
	waitpid(child, &status, 0);
	errno = WEXITSTATUS(status);
	return errno ? -1 : 0;
}

static int do_say(char **a)
{
	return puts(a[0]) < 0 || fflush(stdout) ? -1 : 0;
}

/* Directories in each other, then a file in the last, each named from the one above. */
static int do_deep(char **a)
{
	long long depth = number(a[1]);

	if (chdir(a[0]))
		return -1;
	for (long long i = 0; i < depth; i++)
		if ((mkdir("d", 0755) && errno != EEXIST) || chdir("d"))
			return -1;
	return open("end", O_WRONLY | O_CREAT, 0644) < 0 ? -1 : chdir("/");
}

static int do_rename(char **a)
{
	return rename(a[0], a[1]);
}

static int do_link(char **a)
{
	return link(a[0], a[1]);
}

static int do_symlink(char **a)
{
	return symlink(a[0], a[1]);
}

static int do_unlink(char **a)
{
	return unlink(a[0]);
}

static int do_mkdir(char **a)
{
	return mkdir(a[0], 0755);
}

static int do_rmdir(char **a)
{
	return rmdir(a[0]);
}

static int do_chmod(char **a)
{
	return chmod(a[0], (mode_t)number(a[1]));
}

static int do_setxattr(char **a)
{
	return setxattr(a[0], a[1], a[2], strlen(a[2]), 0);
}

static int do_truncate(char **a)
{
	return truncate(a[0], number(a[1]));
}

static const struct {
	const char *name;
	int arguments;
	int (*does)(char **a);
} known[] = {
	{ "write", 3, do_write },
	{ "make", 3, do_make },
	{ "append", 2, do_append },
	{ "read", 3, do_read },
	{ "sum", 1, do_sum },
	{ "list", 1, do_list },
	{ "thin", 1, do_thin },
	{ "stat", 1, do_stat },
	{ "ino", 1, do_ino },
	{ "same", 2, do_same },
	{ "map", 3, do_map },
	{ "unnamed", 3, do_unnamed },
	{ "punch", 3, do_punch },
	{ "zero", 3, do_zero },
	{ "data", 1, do_data },
	{ "keep", 3, do_keep },
	{ "hear", 2, do_hear },
	{ "until", 2, do_until },
	{ "fill", 2, do_fill },
	{ "watch", 2, do_watch },
	{ "fault", 2, do_fault },
	{ "target", 1, do_link_text },
	{ "sync", 1, do_sync },
	{ "wait", 1, do_wait },
	{ "say", 1, do_say },
	{ "run", 1, do_run },
	{ "run-open", 1, do_run_open },
	{ "deep", 2, do_deep },
	{ "rename", 2, do_rename },
	{ "link", 2, do_link },
	{ "symlink", 2, do_symlink },
	{ "unlink", 1, do_unlink },
	{ "mkdir", 1, do_mkdir },
	{ "rmdir", 1, do_rmdir },
	{ "chmod", 2, do_chmod },
	{ "setxattr", 3, do_setxattr },
	{ "truncate", 2, do_truncate },
};

int main(int argc, char **argv)
{
	for (int i = 1; i < argc;) {
		size_t k = 0;

		while (k < sizeof known / sizeof *known && strcmp(known[k].name, argv[i]))
			k++;
		if (k == sizeof known / sizeof *known || i + known[k].arguments >= argc)
			return 2;
		if (known[k].does(argv + i + 1))
			printf("%s\n", name_of_error());
		i += known[k].arguments + 2;
	}
	return 0;
}
