/* Rows whose blocks lie in data files. */
#ifndef OVERLAY_OUTSIDE_H
#define OVERLAY_OUTSIDE_H

#include "rows.h"

int outside_read(struct store *store, uint64_t ino, const struct row *row, uint16_t wanted, uint8_t *bytes);
/* Blocks of `mask`, at their places in `bytes`, get slots; those of the row that were in others
 * lose them. */
int outside_write(
    struct store *store, uint64_t ino, uint64_t chunk, struct row *row, uint16_t mask, const uint8_t *bytes);
/* The blocks of `mask` are no longer the row's. */
int outside_give(struct store *store, uint64_t ino, const struct row *row, uint16_t mask);
/* As outside_give, for all rows of the layer from chunk `first` on. */
int outside_cut(struct store *store, uint64_t ino, uint64_t first);

/* Gives back what no row names of the data files. Nothing may have been changed since the last
 * commit. */
int store_sweep(struct store *store);

#endif
