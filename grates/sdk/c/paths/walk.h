/* Between the files about paths. */
#ifndef LIND_PATH_WALK_H
#define LIND_PATH_WALK_H

#include <errno.h>
#include <fcntl.h>
#include <lind/paths.h>
#include <linux/magic.h>

/* The grate's own system calls, by its own table: result or negative errno. */
static inline int64_t own(uint32_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3)
{
	return lind_import_syscall((int32_t)nr, a0, a1, a2, a3, 0, 0);
}

static inline void own_close(int fd)
{
	if (fd >= 0)
		own(SYS_close, (uint64_t)fd, 0, 0, 0);
}

/* Opens a name in a directory of ours, to be looked at only. Links are not followed. */
static inline int own_look(int dir, const char *name, int flags)
{
	return (int)own(SYS_openat, (uint64_t)(int64_t)dir, (uintptr_t)name,
	    (uint64_t)(O_PATH | O_CLOEXEC | O_NOFOLLOW | flags), 0);
}

static inline struct lind_arg number(uint64_t value)
{
	return (struct lind_arg){ value, lind_self_ };
}

struct lind_bind {
	char *at; /* in the view */
	char *what; /* its name outside */
	int fd;  /* what is there; -1 if nothing is to be there */
	bool directory;
};

struct lind_view {
	int root;
	struct lind_bind *binds;
	size_t count;
};

/* The bind over a path of the view, or NULL. */
const struct lind_bind *lind_view_at(const struct lind_view *view, const char *path);

/* The kernel's path of a descriptor of ours. 0, or -ENOENT where it has none that begins with a
 * slash; then `path` says what it is. */
int lind_kernel_name(int fd, char path[PATH_MAX]);

#endif
