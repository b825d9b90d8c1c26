/* Directories, and names in them. */
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PASSES 16 /* through a directory that is being emptied, while others fill it */

bool is_dots(const char *name)
{
	return !strcmp(name, ".") || !strcmp(name, "..");
}

bool has_gone(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EISDIR || error == -ENXIO;
}

int open_directory(int at, const char *name)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);

	/* A link is not a directory. */
	return fd < 0 ? errno == ELOOP ? -ENOTDIR : -errno : fd;
}

int open_parent(const char *path, const char **name)
{
	static char parent[PATH_MAX];
	const char *slash = strrchr(path, '/');
	size_t length = slash ? (size_t)(slash - path) : 0;
	int fd;

	*name = slash ? slash + 1 : path;
	if (!**name || is_dots(*name))
		return -EINVAL;
	if (length >= sizeof parent)
		return -ENAMETOOLONG;
	memcpy(parent, path, length);
	parent[length] = 0;
	fd = open(!slash ? "." : length ? parent : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK);
	return fd < 0 ? fail_at(-errno, !slash ? "." : length ? parent : "/") : fd;
}

int make_parents(const char *path)
{
	char part[PATH_MAX];

	for (size_t i = 1; path[i] && i < sizeof part; i++) {
		if (path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if (mkdir(part, 0777) && errno != EEXIST)
			return fail_at(-errno, part);
	}
	return 0;
}

static void link_target(int at, const char *name, const struct stat *st, char target[static PATH_MAX])
{
	ssize_t length = S_ISLNK(st->st_mode) ? readlinkat(at, name, target, PATH_MAX - 1) : 0;

	target[length > 0 ? length : 0] = 0;
}

int file_stat(const struct ask *ask, const char *path)
{
	char target[PATH_MAX];
	struct stat st;

	if (fstatat(AT_FDCWD, path, &st, ask->flags & FOLLOW ? 0 : AT_SYMLINK_NOFOLLOW))
		return -errno;
	link_target(AT_FDCWD, path, &st, target);
	tell_entry(&st, 0, path, target);
	return 0;
}

struct listing {
	char name[PATH_MAX];
	int64_t left;
	bool recursive;
	uint32_t deepest;
};

static int list_open(struct listing *listing, int fd, size_t length, unsigned depth);

static int list_one(struct listing *listing, int at, const char *name, size_t length, unsigned depth)
{
	char target[PATH_MAX];
	int fd = -1, error = 0;
	struct stat st;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
		return 0; /* It has gone meanwhile. */
	link_target(at, name, &st, target);
	if (listing->recursive && S_ISDIR(st.st_mode) && depth < listing->deepest) {
		fd = open_directory(at, name);
		error = fd < 0 ? fd : 0;
	}
	tell_entry(&st, error, listing->name, target);
	return fd < 0 ? 0 : list_open(listing, fd, length, depth + 1);
}

/* Closes the directory. 1: no more entries are wanted. */
static int list_open(struct listing *listing, int fd, size_t length, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *d;
	int r = 0;

	if (!dir) {
		close(fd);
		return -errno;
	}
	if (length)
		listing->name[length++] = '/';
	while (!r && (errno = 0, d = readdir(dir))) {
		size_t more = strlen(d->d_name);

		if (is_dots(d->d_name) || length + more >= sizeof listing->name)
			continue;
		if (!listing->left--) {
			r = 1;
			break;
		}
		memcpy(listing->name + length, d->d_name, more + 1);
		r = list_one(listing, fd, d->d_name, length + more, depth);
		result += !r;
		if (!(result & 255) && is_interrupted())
			r = -ECANCELED;
	}
	if (!r && errno)
		r = -errno;
	closedir(dir);
	return r;
}

int file_list(const struct ask *ask, const char *path)
{
	static struct listing listing;
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NONBLOCK), r;

	if (fd < 0)
		return -errno;
	listing.left = ask->count;
	listing.recursive = ask->flags & RECURSIVE;
	listing.deepest = ask->depth && ask->depth < DEEPEST ? ask->depth : DEEPEST;
	r = list_open(&listing, fd, 0, 1);
	result = r == 1;
	return r < 0 ? r : 0;
}

static int empty(int fd, unsigned depth)
{
	DIR *dir = fdopendir(fd);
	struct dirent *d;
	bool found = true;
	int r = 0;

	if (!dir) {
		close(fd);
		return -errno;
	}
	for (int pass = 0; !r && found && pass < PASSES; pass++) {
		found = false;
		rewinddir(dir);
		while (!r && (d = readdir(dir)))
			if (!is_dots(d->d_name)) {
				found = true;
				r = remove_at(fd, d->d_name, true, depth);
			}
	}
	closedir(dir);
	return r;
}

int remove_at(int at, const char *name, bool recursive, unsigned depth)
{
	struct stat st;
	int fd, r;

	if (fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW))
		return depth && errno == ENOENT ? 0 : -errno;
	if (!S_ISDIR(st.st_mode))
		return unlinkat(at, name, 0) && !(depth && errno == ENOENT) ? fail_at(-errno, name) : 0;
	if (recursive && depth == DEEPEST)
		return fail_at(-ELOOP, name);
	if (recursive) {
		if ((fd = open_directory(at, name)) < 0)
			return fail_at(fd, name);
		if ((r = empty(fd, depth + 1)))
			return r;
	}
	return unlinkat(at, name, AT_REMOVEDIR) && !(depth && errno == ENOENT) ? fail_at(-errno, name) : 0;
}

int file_remove(const struct ask *ask, const char *path)
{
	const char *name;
	int at = open_parent(path, &name), r;

	r = at < 0 ? at : remove_at(at, name, ask->flags & RECURSIVE, 0);
	if (at >= 0)
		close(at);
	return r == -ENOENT && ask->flags & MISSING_OK ? 0 : r;
}

int file_mkdir(const struct ask *ask, const char *path)
{
	mode_t mode = ask->flags & SET_MODE ? ask->mode : 0777;
	struct stat st;
	int r = ask->flags & PARENTS ? make_parents(path) : 0;

	if (r)
		return r;
	if (!mkdir(path, mode))
		return ask->flags & SET_MODE && chmod(path, mode) ? -errno : 0;
	r = -errno;
	return r == -EEXIST && ask->flags & PARENTS && !stat(path, &st) && S_ISDIR(st.st_mode) ? 0 : r;
}
