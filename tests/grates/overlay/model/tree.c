/* A tree as text: what two sides must have alike, and nothing else. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>
#include "model.h"

static FILE *lines;
static uint64_t hash;
static bool with_numbers;

/* The first name of each file that has several. */
static struct {
	uint64_t ino;
	char *path;
} linked[4096];
static int linked_count;

uint64_t hash_bytes(uint64_t from, const void *bytes, size_t length)
{
	const uint8_t *p = bytes;
	uint64_t word;

	for (; length >= 8; p += 8, length -= 8) {
		memcpy(&word, p, 8);
		from = (from ^ word) * 0x9e3779b97f4a7c15ull;
		from ^= from >> 29;
	}
	for (; length; length--)
		from = (from ^ *p++) * 0x100000001b3ull;
	return from;
}

__attribute__((format(printf, 1, 2))) static void put(const char *format, ...)
{
	static char text[20000];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	n = n < (int)sizeof text ? n : (int)sizeof text - 1;
	hash = hash_bytes(hash, text, (size_t)n);
	if (lines)
		fwrite(text, 1, (size_t)n, lines);
}

const char *time_text(int64_t seconds, long nanoseconds, char text[40])
{
	if (seconds >= PAST)
		return "now";
	snprintf(text, 40, "%lld.%09ld", (long long)seconds, nanoseconds);
	return text;
}

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int names_of(int fd, char *names[MANY])
{
	DIR *d = fdopendir(fd);
	struct dirent *e;
	int n = 0;

	if (!d)
		return -1;
	while ((e = readdir(d)) && n < MANY)
		if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
			names[n++] = strdup(e->d_name);
	closedir(d);
	qsort(names, (size_t)n, sizeof *names, by_name);
	return n;
}

static void put_contents(int dir, const char *name, int64_t size)
{
	static char buffer[1 << 16];
	int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW);
	uint64_t sum = 0;
	int64_t total = 0;
	ssize_t got;

	if (fd < 0) {
		put(" unreadable");
		return;
	}
	while ((got = read(fd, buffer, sizeof buffer)) > 0) {
		sum = hash_bytes(sum, buffer, (size_t)got);
		total += got;
	}
	close(fd);
	if (got < 0 || total != size)
		put(" READ %lld of %lld, errno %d", (long long)total, (long long)size, got < 0 ? errno : 0);
	put(" %016llx", (unsigned long long)sum);
}

/* Extended attributes have no calls that begin at a directory: the path from the working
 * directory. */
static void put_xattrs(const char *path)
{
	char list[2000], value[1000], *names[64];
	ssize_t size = llistxattr(path, list, sizeof list), got;
	int n = 0;

	for (char *name = list; size > 0 && name < list + size && n < 64; name += strlen(name) + 1)
		if (!strncmp(name, "user.", 5))
			names[n++] = name;
	qsort(names, (size_t)n, sizeof *names, by_name);
	for (int i = 0; i < n; i++) {
		got = lgetxattr(path, names[i], value, sizeof value);
		put(" %s=%d:%016llx", names[i], (int)got,
		    (unsigned long long)hash_bytes(0, value, got > 0 ? (size_t)got : 0));
	}
}

static void put_other_name(const struct stat *st, const char *path)
{
	if (S_ISDIR(st->st_mode) || st->st_nlink < 2)
		return;
	for (int i = 0; i < linked_count; i++)
		if (linked[i].ino == st->st_ino) {
			put(" is %s", linked[i].path);
			return;
		}
	if (linked_count < 4096) {
		linked[linked_count].ino = st->st_ino;
		linked[linked_count++].path = strdup(path);
	}
}

static void put_entry(int dir, const char *name, const char *path, const struct stat *st)
{
	char text[40], target[400];
	ssize_t got;

	put("%s %06o %u:%u links %u %s", path, st->st_mode, st->st_uid, st->st_gid, (unsigned)st->st_nlink,
	    time_text(st->st_mtim.tv_sec, st->st_mtim.tv_nsec, text));
	if (!S_ISDIR(st->st_mode))
		put(" size %lld", (long long)st->st_size);
	if (with_numbers)
		put(" ino %llu", (unsigned long long)st->st_ino);
	if (S_ISLNK(st->st_mode)) {
		got = readlinkat(dir, name, target, sizeof target - 1);
		target[got < 0 ? 0 : got] = 0;
		put(" -> %s", target);
	}
	if (S_ISREG(st->st_mode))
		put_contents(dir, name, st->st_size);
	put_xattrs(path);
	put_other_name(st, path);
	put("\n");
}

/* For each name, readdir must agree with lstat. */
static void check_entries(int fd, const char *path)
{
	DIR *d = fdopendir(fd);
	struct dirent *e;
	struct stat st;

	while (d && (e = readdir(d))) {
		if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
			continue;
		if (fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW))
			put("%s/%s LISTED, lstat errno %d\n", path, e->d_name, errno);
		else if (st.st_ino != e->d_ino || (e->d_type != DT_UNKNOWN && e->d_type != (st.st_mode >> 12 & 15)))
			put("%s/%s LISTED as inode %llu type %d\n", path, e->d_name, (unsigned long long)e->d_ino,
			    e->d_type);
	}
	if (d)
		closedir(d);
}

static void put_directory(int parent, const char *name, const char *path)
{
	int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW), n;
	char *names[MANY], below[4096];
	struct stat st;

	if (fd < 0 || (n = names_of(dup(fd), names)) < 0) {
		put("%s cannot be listed, errno %d\n", path, errno);
		return;
	}
	check_entries(openat(fd, ".", O_RDONLY | O_DIRECTORY), path);
	for (int i = 0; i < n; i++) {
		snprintf(below, sizeof below, "%s%s%s", path, *path ? "/" : "", names[i]);
		if (fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW))
			put("%s GONE, errno %d\n", below, errno);
		else
			put_entry(fd, names[i], below, &st);
		if (S_ISDIR(st.st_mode))
			put_directory(fd, names[i], below);
		free(names[i]);
	}
	close(fd);
}

uint64_t whole_tree(FILE *to, bool numbers)
{
	struct stat st;

	lines = to;
	hash = 0;
	with_numbers = numbers;
	if (!stat(".", &st))
		put_entry(AT_FDCWD, ".", ".", &st);
	put_directory(AT_FDCWD, ".", "");
	while (linked_count)
		free(linked[--linked_count].path);
	return hash;
}
