/* Contents: chunks of files that came from below. */
#ifndef OVERLAY_CACHE_H
#define OVERLAY_CACHE_H

#include "under.h"

extern uint64_t cache_limit; /* bytes */

void cache_make_room(void); /* where there are more than the limit allows */
int cache_fill(struct imfs_node *n, uint64_t index, uint8_t *bytes, uint32_t room);
int cache_cut(struct imfs *fs, struct imfs_node *n, int64_t size);
int cache_readable(struct imfs_node *n);
int64_t cache_seek(struct imfs_node *n, int64_t off, bool hole);
uint64_t cache_blocks(const struct imfs_node *n);
size_t cache_straight(const struct imfs_node *n, int64_t off, size_t max, int *fd);
int cache_whole(struct imfs_node *n);
void cache_stored(struct imfs_under *u, uint64_t index); /* the store has blocks of that chunk now */
void cache_forget(struct imfs_under *u); /* the node is about to go */

#endif
