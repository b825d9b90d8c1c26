/* The half of a guard that is about reading. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "guard.h"
#include "walk.h"

/* How deep, and for how many entries, a directory is searched before it may be moved. */
#define DEEPEST      64
#define MOST_ENTRIES 100000

/* A file without a path is none that a policy knows. */
static bool readable(const struct lind_guard *guard, const char *path)
{
	return *path != '/' || guard->may_read(path);
}

static bool hides_something(const struct lind_guard *guard, int directory, const char *path, int depth, unsigned *left);

static bool entry_hides_something(const struct lind_guard *guard, int directory, const char *path,
    const struct dirent *entry, int depth, unsigned *left)
{
	char below[LIND_PATH_MAX];
	bool hides;
	int64_t fd;

	if (!strcmp(entry->d_name, ".") || !strcmp(entry->d_name, ".."))
		return false;
	if (!*left ||
	    snprintf(below, sizeof below, "%s/%s", strcmp(path, "/") ? path : "", entry->d_name) >= (int)sizeof below)
		return true;
	--*left;
	if (!readable(guard, below))
		return true;
	if (entry->d_type != DT_DIR && entry->d_type != DT_UNKNOWN)
		return false;
	fd = own(SYS_openat, (uint64_t)directory, (uintptr_t)entry->d_name,
	    O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return fd != -ENOTDIR && fd != -ENOENT && fd != -ELOOP;
	hides = hides_something(guard, (int)fd, below, depth + 1, left);
	own_close((int)fd);
	return hides;
}

/* Whether a directory, which is open for reading, has something below it that may not be read. So
 * does one that is too large to be searched. */
static bool hides_something(const struct lind_guard *guard, int directory, const char *path, int depth, unsigned *left)
{
	_Alignas(struct dirent) char entries[2048];
	int64_t size;

	if (depth > DEEPEST)
		return true;
	while ((size = own(SYS_getdents64, (uint64_t)directory, (uintptr_t)entries, sizeof entries, 0)) > 0) {
		for (int64_t at = 0; at < size; at += ((struct dirent *)(entries + at))->d_reclen)
			if (entry_hides_something(guard, directory, path, (struct dirent *)(entries + at), depth, left))
				return true;
	}
	return size < 0;
}

/* The files below would have paths at which the policy does not know them. */
static bool takes_hidden_files_away(const struct lind_guard *guard, const struct lind_place *place)
{
	unsigned left = MOST_ENTRIES;
	int64_t fd = own(SYS_openat, (uint64_t)place->object, (uintptr_t)".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	bool hides = fd < 0 || hides_something(guard, (int)fd, place->path, 0, &left);

	own_close((int)fd);
	return hides;
}

/* Whether what a call does to a file needs the right to read it. Attributes and the texts of links
 * may be seen. */
static bool reads(const struct lind_call *c, unsigned effect)
{
	switch (c->nr) {
	case SYS_open:
	case SYS_openat:
	case SYS_openat2:
	case SYS_creat:
		return effect & LIND_DOES_READ;
	case SYS_access:
		return lind_arg32(c, 1) & R_OK;
	case SYS_faccessat:
	case SYS_faccessat2:
		return lind_arg32(c, 2) & R_OK;
	case SYS_rename:
	case SYS_renameat:
	case SYS_renameat2:
		return effect & LIND_DOES_REMOVE;
	default:
		return effect & (LIND_DOES_EXEC | LIND_DOES_LINK);
	}
}

int guard_may_read(
    const struct lind_guard *guard, const struct lind_call *c, unsigned effect, const struct lind_place *place)
{
	bool asks = c->nr == SYS_access || c->nr == SYS_faccessat || c->nr == SYS_faccessat2;

	if (!guard->may_read || !reads(c, effect) || place->object < 0 || !guard_in_a_tree(place) ||
	    guard_is_kernels(place))
		return 0;
	if (readable(guard, place->path) &&
	    (!guard_moves_a_directory(c->nr, effect, place) || !takes_hidden_files_away(guard, place)))
		return 0;
	switch (asks ? LIND_TOLD : lind_ask(c->target, c->nr, EACCES, "may not be read", place->path, place->path)) {
	case LIND_ALLOWED:
		return 0;
	case LIND_INTERRUPTED:
		return -EINTR;
	default:
		return -EACCES;
	}
}

bool guard_may_read_fd(const struct lind_guard *guard, int fd)
{
	struct lind_place place = { .dir = -1, .object = fd };
	int64_t flags = own(SYS_fcntl, (uint64_t)fd, F_GETFL, 0, 0);

	if (!guard->may_read || flags < 0 || own(SYS_fstat, (uint64_t)fd, (uintptr_t)&place.st, 0, 0))
		return true;
	/* A descriptor that only names a file is judged when it is opened. */
	if (flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY ||
	    !(S_ISREG(place.st.st_mode) || S_ISDIR(place.st.st_mode)))
		return true;
	return lind_kernel_name(fd, place.path) || readable(guard, place.path);
}
