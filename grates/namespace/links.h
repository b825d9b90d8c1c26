/* Reads links. */
#ifndef NAMESPACE_LINKS_H
#define NAMESPACE_LINKS_H

#include "tables.h"

/* As readlink of `cage` has it, with a null after it; asked of the grates inside or past them. */
int64_t read_link(uint64_t cage, const char *path, char target[PATH_MAX], bool inside);
/* The target of a client's descriptor: the result of readlink for it in /proc/self/fd. */
int64_t fd_link(uint64_t cage, uint32_t fd, char target[PATH_MAX]);

#endif
