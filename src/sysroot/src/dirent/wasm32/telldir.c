/* A position in a directory has 64 bits and on many filesystems is a hash that uses them; telldir
 * returns
 * 32. A position that does not fit gets a number below -1, which stands for it from then on: the
 * table holds each once, however often a program asks. */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include "../__dirent.h"
#include "lock.h"
#include "dir_position.h"

static volatile int lock[1];
static struct {
	off_t *positions; /* number -2 - i is positions[i] */
	uint32_t *slots; /* by hash: index + 1, or 0 */
	uint32_t count, size;
} table;

static uint32_t *slot_of(off_t position)
{
	uint32_t i = (uint64_t)position * 0x9e3779b97f4a7c15 >> 32;
	for (;; i++) {
		uint32_t *slot = &table.slots[i & (table.size - 1)];
		if (!*slot || table.positions[*slot - 1] == position) return slot;
	}
}

/* Keeps half of the slots free. */
static int grow(void)
{
	uint32_t size = table.size ? 2*table.size : 64;
	off_t *positions = realloc(table.positions, size/2 * sizeof *positions);
	if (!positions) return -1;
	table.positions = positions;
	uint32_t *slots = calloc(size, sizeof *slots);
	if (!slots) return -1;
	free(table.slots);
	table.slots = slots;
	table.size = size;
	for (uint32_t i = 0; i < table.count; i++) *slot_of(positions[i]) = i + 1;
	return 0;
}

static long number_of(off_t position)
{
	if (table.count == table.size/2 && grow()) return -1;
	uint32_t *slot = slot_of(position);
	if (!*slot) {
		table.positions[table.count] = position;
		*slot = ++table.count;
	}
	return -1 - (long)*slot;
}

long telldir(DIR *dir)
{
	if (dir->tell >= 0 && dir->tell <= LONG_MAX) return dir->tell;
	LOCK(lock);
	long number = number_of(dir->tell);
	UNLOCK(lock);
	return number;
}

off_t __dir_position(long number)
{
	off_t position = -1;
	if (number >= 0) return number;
	LOCK(lock);
	if (number < -1 && -2 - number < (long)table.count) position = table.positions[-2 - number];
	UNLOCK(lock);
	return position;
}
