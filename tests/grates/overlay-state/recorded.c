#include "recorded.h"
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define NAMES       2
#define FILES       1000 /* data files at most, each time one is made */
#define DESCRIPTORS 1024

ssize_t __real_pwrite(int fd, const void *from, size_t size, off_t at);
int __real_ftruncate(int fd, off_t size);
int __real_fallocate(int fd, int mode, off_t at, off_t size);
int __real_fdatasync(int fd);
int __real_fsync(int fd);
int __real_openat(int folder, const char *name, int flags, mode_t mode);
int __real_unlinkat(int folder, const char *name, int flags);

struct recorded *recorded;
size_t recorded_count;
static size_t room;
static int watched[3] = { -1, -1, -1 };
static unsigned file_of[DESCRIPTORS];  /* data files by descriptors that are open */
static uint64_t name_of[FILES];   /* and their names */
static unsigned files;

static unsigned file_at(int fd)
{
	for (unsigned i = 0; i < 3; i++)
		if (fd >= 0 && fd == watched[i])
			return i;
	return fd >= 0 && fd < DESCRIPTORS ? file_of[fd] : 0;
}

static void add(unsigned file, enum deed deed, uint64_t name, int64_t at, const void *bytes, size_t size)
{
	if (recorded_count == room)
		recorded = realloc(recorded, (room = room ? 2 * room : 1024) * sizeof *recorded);
	recorded[recorded_count] = (struct recorded){ deed, file, name, at, size, bytes ? malloc(size) : NULL };
	if (bytes)
		memcpy(recorded[recorded_count].bytes, bytes, size);
	recorded_count++;
}

static void note(int fd, enum deed deed, int64_t at, const void *bytes, size_t size)
{
	unsigned file = file_at(fd);

	if (file || (watched[0] >= 0 && fd == watched[0]))
		add(file, deed, 0, at, bytes, size);
}

ssize_t __wrap_pwrite(int fd, const void *from, size_t size, off_t at)
{
	note(fd, WRITE_BYTES, at, from, size);
	return __real_pwrite(fd, from, size, at);
}

int __wrap_ftruncate(int fd, off_t size)
{
	note(fd, SET_SIZE, size, NULL, 0);
	return __real_ftruncate(fd, size);
}

int __wrap_fallocate(int fd, int mode, off_t at, off_t size)
{
	note(fd, PUNCH, at, NULL, (size_t)size);
	return __real_fallocate(fd, mode, at, size);
}

int __wrap_fdatasync(int fd)
{
	note(fd, SYNC, 0, NULL, 0);
	return __real_fdatasync(fd);
}

int __wrap_fsync(int fd)
{
	note(fd, SYNC, 0, NULL, 0);
	return __real_fsync(fd);
}

/* The last that was made with this name. */
static unsigned file_named(uint64_t name)
{
	for (unsigned file = files; file-- > 3;)
		if (name_of[file] == name)
			return file;
	abort();
}

int __wrap_openat(int folder, const char *name, int flags, ...)
{
	uint64_t number = strtoull(name, NULL, 10);
	int fd = __real_openat(folder, name, flags, 0600);

	if (fd >= 0 && fd < DESCRIPTORS)
		file_of[fd] = 0;
	if (fd < 0 || folder < 0 || folder != watched[NAMES])
		return fd;
	if (fd >= DESCRIPTORS || files == FILES)
		abort();
	if (flags & O_CREAT) {
		name_of[files++] = number;
		add(NAMES, MAKE_NAME, files - 1, 0, NULL, 0);
	}
	file_of[fd] = file_named(number);
	return fd;
}

int __wrap_unlinkat(int folder, const char *name, int flags)
{
	if (folder >= 0 && folder == watched[NAMES])
		add(NAMES, REMOVE_NAME, file_named(strtoull(name, NULL, 10)), 0, NULL, 0);
	return __real_unlinkat(folder, name, flags);
}

void record(int state, int log, int folder)
{
	for (size_t i = 0; i < recorded_count; i++)
		free(recorded[i].bytes);
	recorded_count = 0;
	files = 3;
	memset(file_of, 0, sizeof file_of);
	watched[0] = state;
	watched[1] = log;
	watched[NAMES] = folder;
}

void record_stop(void)
{
	watched[0] = watched[1] = watched[NAMES] = -1;
	memset(file_of, 0, sizeof file_of);
}

/* Whether deed `i` is sure to have reached the disk before deed `count`. */
static bool is_sure(size_t i, size_t count)
{
	for (size_t j = i + 1; j < count; j++)
		if (recorded[j].deed == SYNC && recorded[j].file == recorded[i].file)
			return true;
	return false;
}

static int open_replayed(int folder, unsigned file, int flags)
{
	char name[32];

	snprintf(name, sizeof name, "file%u", file);
	return __real_openat(folder, name, O_RDWR | flags, 0600);
}

static void act(const struct recorded *r, int fd, size_t size)
{
	if (r->deed == WRITE_BYTES && __real_pwrite(fd, r->bytes, size, r->at) != (ssize_t)size)
		abort();
	if (r->deed == SET_SIZE && __real_ftruncate(fd, r->at))
		abort();
	if (r->deed == PUNCH && __real_fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, r->at, (off_t)r->size))
		abort();
}

static void clear(int folder)
{
	char name[32];

	for (unsigned file = 3; file < files; file++) {
		snprintf(name, sizeof name, "%llu", (unsigned long long)name_of[file]);
		__real_unlinkat(folder, name, 0);
	}
}

/* Gives the data files their names: if several share one, the last to be made gets it. */
static void give_names(int folder, const bool *named)
{
	char from[32], to[32];

	for (unsigned file = 3; file < files; file++) {
		snprintf(from, sizeof from, "file%u", file);
		snprintf(to, sizeof to, "%llu", (unsigned long long)name_of[file]);
		if (named[file] ? renameat(folder, from, folder, to) : __real_unlinkat(folder, from, 0))
			abort();
	}
}

void replay(size_t count, size_t torn, uint64_t lost, int state, int log, int folder)
{
	static int fds[FILES];
	bool named[FILES] = { false };

	clear(folder);
	fds[0] = state;
	fds[1] = log;
	for (unsigned file = 3; file < files; file++)
		if ((fds[file] = open_replayed(folder, file, O_CREAT | O_TRUNC)) < 0)
			abort();
	for (int i = 0; i < 2; i++)
		if (__real_ftruncate(fds[i], 0))
			abort();
	for (size_t i = 0; i < count; i++) {
		const struct recorded *r = &recorded[i];
		size_t size = r->size;

		if (i + 1 == count && r->deed == WRITE_BYTES)
			size = torn < size ? size - torn : 0;
		if (lost && !is_sure(i, count)) {
			lost = lost * 6364136223846793005u + 1442695040888963407u;
			if (lost >> 63)
				continue;
		}
		if (r->file == NAMES && r->deed != SYNC)
			named[r->name] = r->deed == MAKE_NAME;
		else
			act(r, fds[r->file], size);
	}
	for (unsigned file = 3; file < files; file++)
		close(fds[file]);
	if (folder >= 0)
		give_names(folder, named);
}
