/* A set of numbers of blocks in a data file: a bit each, in pages that are made when they are
 * needed. */
#ifndef OVERLAY_SLOTS_H
#define OVERLAY_SLOTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SLOT_MOST (1ull << 32) /* 16 TiB of a data file, which is as large as it may be on ext4 */

struct slots {
	uint64_t **pages;
	size_t count;  /* of pages there is room for */
};

bool slots_has(const struct slots *slots, uint64_t slot);
int slots_add(struct slots *slots, uint64_t slot); /* -ENOMEM; -EFBIG beyond SLOT_MOST */
void slots_remove(struct slots *slots, uint64_t slot);
/* The first from this one on that is in the set, or that is not; SLOT_MOST: there is none. */
uint64_t slots_next(const struct slots *slots, uint64_t from, bool in);
void slots_clear(struct slots *slots);

#endif
