/*
 * A disk that remembers: what is written to files, and when that was sure to be on the disk. It
 * replaces pwrite, ftruncate, fallocate, fdatasync, openat, unlinkat and fsync in the store.
 */
#ifndef RECORDED_H
#define RECORDED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum deed { WRITE_BYTES, SET_SIZE, PUNCH, SYNC, MAKE_NAME, REMOVE_NAME };

struct recorded {
	enum deed deed;
	unsigned
	    file; /* 0: the state, 1: its log, 2: the names of its data files, from 3 on each data file that was made */
	uint64_t name; /* of a data file that is made or removed */
	int64_t at;
	size_t size;
	uint8_t *bytes;
};

extern struct recorded *recorded;
extern size_t recorded_count;

/* Starts a new recording of the operations on these descriptors; `folder`: and on files in it, or
 * -1. It is empty. */
void record(int state, int log, int folder);
void record_stop(void);

/*
 * Makes the files what they may be if the power fails after `count` deeds: of what was not synced
 * since, all (`lost` 0) or what the bits of a random number say. Of the last write, `torn` bytes
 * are missing.
 */
void replay(size_t count, size_t torn, uint64_t lost, int state, int log, int folder);

#endif
