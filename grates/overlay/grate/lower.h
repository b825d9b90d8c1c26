/* The directory below, which is only read. Paths are as `origin`. Descriptors belong to the
 * table. */
#ifndef OVERLAY_LOWER_H
#define OVERLAY_LOWER_H

#include "under.h"

struct statx;
int lower_init(const char *path);
int lower_dir(const char *path);
int lower_file(struct imfs_under *u);
void lower_forget(void); /* directories that are open: others may have moved them */
void lower_close(struct imfs_under *u);
int lower_stat(const char *path, struct statx *st);
int lower_link(const char *path, char *target, size_t size); /* its length */
void lower_space(uint64_t *blocks, uint64_t *left);
bool lower_is_home(const struct statx *st); /* on the device of the lower directory */
char *lower_join(const char *dir, const char *name); /* malloc; NULL: no memory */

#endif
