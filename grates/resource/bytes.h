/* Bytes that are read and written. */
#ifndef RESOURCE_BYTES_H
#define RESOURCE_BYTES_H

#include "tables.h"

/* A file is mapped: what can be read or written by that counts at once. */
int64_t map_file(struct client *c, const struct lind_call *call, lind_handle_fn *map);

/* Has calls that carry bytes, and what is counted of, handled. */
void bytes_begin(void);

#endif
