#include "recorded.h"
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

ssize_t __real_pwrite(int fd, const void *from, size_t size, off_t at);
int __real_ftruncate(int fd, off_t size);
int __real_fdatasync(int fd);

struct recorded *recorded;
size_t recorded_count;
static size_t room;
static int watched[2] = { -1, -1 };

static void note(int fd, enum deed deed, int64_t at, const void *bytes, size_t size)
{
	if (fd != watched[0] && fd != watched[1])
		return;
	if (recorded_count == room)
		recorded = realloc(recorded, (room = room ? 2 * room : 1024) * sizeof *recorded);
	recorded[recorded_count] = (struct recorded){ deed, fd == watched[1], at, size, size ? malloc(size) : NULL };
	if (size)
		memcpy(recorded[recorded_count].bytes, bytes, size);
	recorded_count++;
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

int __wrap_fdatasync(int fd)
{
	note(fd, SYNC, 0, NULL, 0);
	return __real_fdatasync(fd);
}

void record(int state, int log)
{
	for (size_t i = 0; i < recorded_count; i++)
		free(recorded[i].bytes);
	recorded_count = 0;
	watched[0] = state;
	watched[1] = log;
}

void record_stop(void)
{
	watched[0] = watched[1] = -1;
}

/* Whether deed `i` is sure to have reached the disk before deed `count`. */
static bool is_sure(size_t i, size_t count)
{
	for (size_t j = i + 1; j < count; j++)
		if (recorded[j].deed == SYNC && recorded[j].file == recorded[i].file)
			return true;
	return false;
}

void replay(size_t count, size_t torn, uint64_t lost, int state, int log)
{
	const int files[2] = { state, log };

	for (int i = 0; i < 2; i++)
		if (__real_ftruncate(files[i], 0))
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
		if (r->deed == WRITE_BYTES && __real_pwrite(files[r->file], r->bytes, size, r->at) != (ssize_t)size)
			abort();
		if (r->deed == SET_SIZE && __real_ftruncate(files[r->file], r->at))
			abort();
	}
}
