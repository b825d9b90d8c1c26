/* The output of export. Any error ends it. */
#ifndef OVERLAY_VERB_EXPORT_H
#define OVERLAY_VERB_EXPORT_H

#include "tree.h"

/* By it overlayfs knows a directory that hides the one below, where it is mounted with
 * `userxattr`. */
#define OPAQUE "user.overlay.opaque"

/* tar.c: to a file, or NULL for standard output. */
void tar_begin(const char *output);
void tar_node(struct store *store, const char *path, const struct store_node *node, bool opaque);
void tar_link(const char *path, const char *first,
    const struct store_node *node); /* another name of a file that was put at `first` */
void tar_whiteout(const char *path); /* a name that overlayfs hides: a device that is none */
void tar_end(void);

#endif
