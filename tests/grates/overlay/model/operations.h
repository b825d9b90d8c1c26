/* Shared parts of the operations: open files, paths, and how a result is printed. */
#ifndef OPERATIONS_H
#define OPERATIONS_H

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "model.h"

#define SLOTS     8
#define USER      1000
#define PATH_ROOM 400

extern int slots[SLOTS]; /* open files, or -1 */

static inline int64_t sys(int64_t r)
{
	return r < 0 ? -errno : r;
}

/* Of a call with two paths that are both wrong, which of them is told first is the kernel's affair;
 * so is what is wrong first with a file that shall be created by a name with a slash behind it. */
static inline int64_t any_path_error(int64_t r)
{
	return r == -ENOENT || r == -ENOTDIR || r == -ELOOP || r == -EACCES || r == -ENAMETOOLONG || r == -EISDIR
	    ? -ENOENT
	    : r;
}

/* A path that never leads out of the tree, whatever links and renamed directories are on its
 * way. */
void any_path(char path[PATH_ROOM]);
/* The working directory or an open file, which may be no directory. `slot`: what to call it in a
 * line. */
int any_start(int *slot);

__attribute__((format(printf, 2, 3))) void did(int64_t r, const char *format, ...);
/* A line that goes with the one before. */
__attribute__((format(printf, 1, 2))) void also(const char *format, ...);

void operation_on_data(void);
void operation_on_names(void);
void operation_on_attributes(void);

#endif
