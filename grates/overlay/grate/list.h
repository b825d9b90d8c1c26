/* Names and attributes of the lower directory, and what the state says instead. */
#ifndef OVERLAY_LIST_H
#define OVERLAY_LIST_H

#include "under.h"

int list_names(struct imfs *fs, struct imfs_node *dir, const char *name, size_t length);
int list_vanished(struct imfs_node *n); /* somebody has removed it below, or put something else there; -ENOENT */
int know_node(struct imfs *fs, struct imfs_node *n);
int know_xattrs(struct imfs *fs, struct imfs_node *n);

#endif
