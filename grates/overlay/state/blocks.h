/* Bytes of files in a state. */
#ifndef OVERLAY_BLOCKS_H
#define OVERLAY_BLOCKS_H

#include "store.h"

/* Blocks of this layer that begin at `size` or behind it are gone. */
int blocks_cut(struct store *store, uint64_t ino, int64_t size);

#endif
