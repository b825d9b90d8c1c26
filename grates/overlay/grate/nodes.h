/* Which nodes there are, by their numbers. */
#ifndef OVERLAY_NODES_H
#define OVERLAY_NODES_H

#include "under.h"

struct imfs_node *node_by_ino(uint64_t ino);
void node_renumber(struct imfs_node *n, uint64_t ino);
struct imfs_node *node_make(uint32_t mode, uint64_t ino, struct imfs_node *dir); /* NULL: no memory */
void node_shows(struct imfs_node *n, char *origin); /* that is below it; takes it over */
struct imfs_node *node_of_row(
    uint64_t ino, struct imfs_node *dir); /* from the row in the store. NULL: no row, or no memory */
void node_from_row(struct imfs_node *n, const struct store_node *row);
/* Calls `each` for all nodes until it returns false, and returns false then. */
bool node_each(bool (*each)(struct imfs_node *n, void *to), void *to);
int node_born(struct imfs_node *n);
void node_free(struct imfs_under *u); /* after the last reference to it is gone */

#endif
