/* Rows of up to sixteen blocks of a file: their bytes are in them, or lie in a data file. */
#ifndef OVERLAY_ROWS_H
#define OVERLAY_ROWS_H

#include "data.h"
#include "store.h"
#include <sqlite3.h>

#define BLOCKS (STORE_CHUNK / STORE_BLOCK)

struct row {
	uint16_t held, zeros;
	const uint8_t *bytes;  /* of the blocks that are neither missing nor zeros, one after the other */
	size_t size;
	bool outside;   /* there are none: each block has a slot */
	uint64_t slot[BLOCKS];  /* SLOT_NONE for the others */
};

static inline bool block_is_stored(const struct row *row, unsigned i)
{
	return row->held & ~row->zeros & 1u << i;
}

/* Reads the columns held, zeros and bytes of a row, from that one on. False: it is damaged. */
bool row_of(const struct store *store, sqlite3_stmt *statement, int column, struct row *row);
bool block_is_zero(const uint8_t *block);
/* Writes one of this layer. */
int write_row(struct store *store, uint64_t ino, uint64_t chunk, const struct row *row);

#endif
