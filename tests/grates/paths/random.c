/*
 * Makes a tree of directories, files and symbolic links in a new directory, and prints where random
 * paths lead in it: random DIRECTORY SEED COUNT. The output is the same wherever the directory is.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#ifndef DEEP
#define DEEP 100
#endif

static uint64_t state;

/* splitmix64 */
static unsigned below(unsigned n)
{
	uint64_t x = state += 0x9e3779b97f4a7c15;

	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return (unsigned)((x ^ x >> 31) % n);
}

static void fail(const char *what)
{
	perror(what);
	exit(2);
}

/* Names, dots, slashes: a path from where we are, never absolute. */
static void random_path(char *path, unsigned most)
{
	unsigned parts = 1 + below(most);

	*path = 0;
	for (unsigned i = 0; i < parts; i++) {
		unsigned kind = below(12);

		if (i)
			strcat(path, below(8) ? "/" : "//");
		if (kind == 0)
			strcat(path, ".");
		else if (kind < 4)
			strcat(path, "..");
		else
			sprintf(path + strlen(path), "n%u", below(5));
	}
	if (!below(5))
		strcat(path, below(3) ? "/" : "/.");
}

static void put_mark(int dir, const char *name, unsigned id)
{
	int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL, 0644);
	char text[16];
	int length = sprintf(text, "%u", id);

	if (fd < 0 || write(fd, text, (size_t)length) != length || close(fd))
		fail(name);
}

/* Fills the directory that we are in. */
static void make_tree(unsigned depth, unsigned *id)
{
	char name[8], target[256];

	put_mark(AT_FDCWD, ".id", ++*id);
	for (unsigned i = 0; i < 5; i++) {
		unsigned kind = below(5);

		sprintf(name, "n%u", i);
		if (kind == 0)
			put_mark(AT_FDCWD, name, ++*id);
		else if (kind < 3 && depth) {
			if (mkdir(name, 0755) || chdir(name))
				fail(name);
			make_tree(depth - 1, id);
			if (chdir(".."))
				fail("..");
		} else if (kind == 3) {
			random_path(target, 4);
			if (symlink(target, name))
				fail(name);
		}
	}
}

static const char *mark(int dir, const char *name)
{
	static char text[16];
	int fd = openat(dir, name, O_RDONLY);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);

	if (fd >= 0)
		close(fd);
	if (length < 0)
		return "elsewhere";
	text[length] = 0;
	return text;
}

static void print_open(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY);
	char text[16] = "";

	if (fd < 0 || fstat(fd, &st))
		printf(" open %d", errno);
	else if (S_ISDIR(st.st_mode))
		printf(" directory %s", mark(fd, ".id"));
	else
		printf(" file %s", read(fd, text, sizeof text - 1) < 0 ? "?" : text);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	char path[512], target[512];
	unsigned id = 0, count;
	struct stat st;

	if (argc != 4)
		return 2;
	state = strtoull(argv[2], NULL, 10);
	count = (unsigned)strtoul(argv[3], NULL, 10);
	if (mkdir(argv[1], 0755) || chdir(argv[1]))
		fail(argv[1]);
	/* No path leads out of the new directory. */
	for (int i = 0; i < DEEP; i++)
		if (mkdir("u", 0755) || chdir("u"))
			fail("u");
	make_tree(3, &id);
	while (count--) {
		ssize_t length;

		random_path(path, 7);
		printf("%s:", path);
		print_open(path);
		printf(" lstat %d", lstat(path, &st) ? errno : (int)(st.st_mode & S_IFMT));
		length = readlink(path, target, sizeof target - 1);
		if (length >= 0)
			target[length] = 0;
		printf(length < 0 ? " link %d\n" : " link to %d %s\n", length < 0 ? errno : (int)length, target);
	}
	return 0;
}
