/* A small change of a large file, made durable, and the whole file read again. */
#define RANDOM_BYTES 100

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "child.h"

static void change_byte(int fd, off_t at)
{
	unsigned char byte;

	if (pread(fd, &byte, 1, at) != 1)
		fail("read");
	byte++;
	if (pwrite(fd, &byte, 1, at) != 1)
		fail("write");
}

static void change_mapped(int fd, off_t size)
{
	unsigned char *map = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (map == MAP_FAILED)
		fail("mmap");
	map[size / 2]++;
	if (msync(map, (size_t)size, MS_SYNC) || munmap(map, (size_t)size))
		fail("msync");
}

static void edit(const char *what, int fd, off_t size, const char *file, const char *other)
{
	char more[100];
	uint32_t place = 1;

	if (!strcmp(what, "begin"))
		change_byte(fd, 0);
	else if (!strcmp(what, "middle"))
		change_byte(fd, size / 2);
	else if (!strcmp(what, "end"))
		change_byte(fd, size - 1);
	else if (!strcmp(what, "random")) {
		for (int i = 0; i < RANDOM_BYTES; i++) {
			place = place * 1103515245u + 12345u;
			change_byte(fd, (off_t)(place % (uint64_t)size));
		}
	} else if (!strcmp(what, "truncate")) {
		if (ftruncate(fd, size / 2))
			fail("ftruncate");
	} else if (!strcmp(what, "append")) {
		memset(more, 'a', sizeof more);
		if (pwrite(fd, more, sizeof more, size) != sizeof more)
			fail("write");
	} else if (!strcmp(what, "rename")) {
		if (rename(file, other))
			fail("rename");
	} else if (!strcmp(what, "mmap"))
		change_mapped(fd, size);
	else
		fail("which change?");
}

static void read_again(const char *file)
{
	static char buffer[1 << 20];
	int fd = open(file, O_RDONLY);
	int64_t total = 0;
	ssize_t got;

	if (fd < 0)
		fail(file);
	while ((got = read(fd, buffer, sizeof buffer)) > 0) {
		seen(buffer, (size_t)got);
		total += got;
	}
	if (got < 0)
		fail("read");
	close(fd);
	count("bytes", total);
}

void large_edit(char **arguments)
{
	const char *file = arguments[0];
	char other[4096];
	struct stat st;
	int fd;

	snprintf(other, sizeof other, "%s.renamed", file);
	begin();
	fd = open(file, O_RDWR);
	if (fd < 0 || fstat(fd, &st))
		fail(file);
	edit(arguments[1], fd, st.st_size, file, other);
	phase("edit");
	if (fsync(fd))
		fail("fsync");
	close(fd);
	phase("fsync");
	read_again(strcmp(arguments[1], "rename") ? file : other);
	phase("read_again");
}
