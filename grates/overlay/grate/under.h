/*
 * A node of the overlay has one of these beside it: what it has below, and what the state has of
 * it. Everything in the grate is under the lock of imfs, held for writing; the store has a mutex of
 * its own inside that, so that a commit waits for the disk without holding up readers of memory.
 */
#ifndef OVERLAY_UNDER_H
#define OVERLAY_UNDER_H

#include <stdlib.h>
#include "../../lib/memfs/memfs.h"
#include "../state/store.h"

#define ROOT_INO 1u  /* of the root in the store, whatever the lower directory's own number is */

struct left_out {
	struct left_out *next;
	char name[];
};

struct imfs_under {
	struct imfs_node *node;
	struct imfs_under *same_hash;
	struct imfs_under *next_dirty, **at_dirty;
	struct imfs_under *next_cached, **at_cached;
	struct imfs_under *next_mapped;
	char *origin;   /* path below the lower directory, "" for itself. NULL: nothing of it shows here */
	int64_t origin_size;  /* bytes that may show */
	int64_t cut;   /* what the store has from here on is void; INT64_MAX: nothing */
	int64_t stored_end;  /* behind it the store has no blocks */
	uint64_t blocks;  /* of the lower file */
	struct store_stamp stamp; /* of the lower file as it was found */
	uint32_t who, logged;  /* whose call changed it last, and of whose the log has a line */
	uint32_t hidden;  /* names of the lower directory that are removed, or lead elsewhere */
	bool row, first_row;  /* the store has one; it had one when the run began */
	bool foreign;   /* on another device than the lower directory */
	bool blind;   /* the lower directory may be searched but not read */
	struct left_out *left_out; /* which of its names were removed in this run */
	int fd;    /* of the lower file, or -1 */
	int watch;   /* by which it is told what others do in the lower directory, or -1 */
	uint8_t *stored; /* bit i: the store has blocks of chunk i. Of what was in it from the start it is not known */
	uint64_t stored_count; /* bits there is room for */
	bool xattrs_known, mapped;
	bool kept; /* some program holds it: see renew.c */
	bool compared; /* with the store, in this flush */
};

/* The number that the store knows a node by. */
static inline uint64_t row_ino(const struct imfs_node *n)
{
	return n == fs.root ? ROOT_INO : n->ino;
}

static inline int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

#endif
