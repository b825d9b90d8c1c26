/* The directory that a walk is in, with a descriptor of ours, and the ways into another one. */
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include "here.h"

int lind_here_take(struct here *h, int fd)
{
	if (fd < 0)
		return fd;
	own_close(h->at);
	h->at = fd;
	return 0;
}

/* The top of all paths here. */
static int enter_top(struct here *h)
{
	h->text[0] = 0;
	return lind_here_take(h,
	    h->view ? (int)own(SYS_openat, (uint64_t)h->view->root, (uintptr_t)".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0)
		    : own_look(AT_FDCWD, "/", O_DIRECTORY));
}

static bool is_same(const struct stat *one, const struct stat *other)
{
	return one->st_dev == other->st_dev && one->st_ino == other->st_ino;
}

static struct stat top;

static void learn_top(void)
{
	int fd = own_look(AT_FDCWD, "/", O_DIRECTORY);

	if (fd < 0 || own(SYS_fstat, (uint64_t)fd, (uintptr_t)&top, 0, 0))
		top.st_ino = 0;
	own_close(fd);
}

/* Opens the root directory of the target, which may have changed it. */
static int open_root(struct here *h)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct lind_arg here = { (uint64_t)(int64_t)AT_FDCWD, h->target };
	int fd, r;

	pthread_once(&once, learn_top);
	fd = (int)lind_call(SYS_openat, lind_self_, here, lind_mine("/"), number(O_PATH | O_DIRECTORY | O_CLOEXEC),
	    number(0), number(0), number(0));
	if (fd < 0)
		return fd;
	if ((r = (int)own(SYS_fstat, (uint64_t)fd, (uintptr_t)&h->root, 0, 0))) {
		own_close(fd);
		return r;
	}
	h->root_known = true;
	return fd;
}

int lind_here_root(struct here *h)
{
	int r;

	if (h->view)
		return enter_top(h);
	h->text[0] = 0;
	if ((r = lind_here_take(h, open_root(h))) || is_same(&h->root, &top))
		return r;
	if ((r = lind_kernel_name(h->at, h->text)))
		return r;
	if (!strcmp(h->text, "/"))
		h->text[0] = 0;
	return 0;
}

/* Whether we are where the target's `..` leads no further. */
static int is_at_root(struct here *h)
{
	struct stat here;
	int fd, r;

	if (!h->root_known) {
		if ((fd = open_root(h)) < 0)
			return fd;
		own_close(fd);
	}
	if (is_same(&h->root, &top))
		return 0;
	r = (int)own(SYS_fstat, (uint64_t)h->at, (uintptr_t)&here, 0, 0);
	return r ? r : is_same(&here, &h->root);
}

int lind_here_elsewhere(struct here *h, int fd)
{
	int r = lind_here_take(h, fd);

	if (!r && (r = lind_view_name(h->view, h->at, h->text)))
		return r;
	if (!strcmp(h->text, "/"))
		h->text[0] = 0;
	return r;
}

int lind_here_argument(struct lind_arg dir)
{
	return (int)lind_call(SYS_openat, lind_self_, dir, lind_mine("."), number(O_PATH | O_DIRECTORY | O_CLOEXEC),
	    number(0), number(0), number(0));
}

int lind_here_append(const struct here *h, const char *name, char to[LIND_PATH_MAX])
{
	size_t length = strlen(h->text), more = strlen(name);

	if (length + more + 2 > LIND_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(to, h->text, length);
	to[length] = '/';
	memcpy(to + length + 1, name, more + 1);
	return 0;
}

int lind_here_look(struct here *h, const char *name, int flags, bool *bound)
{
	char path[LIND_PATH_MAX];
	const struct lind_bind *bind;

	*bound = false;
	if (h->view && h->view->count && !lind_here_append(h, name, path) && (bind = lind_view_at(h->view, path))) {
		*bound = true;
		if (bind->fd < 0)
			return -ENOENT;
		if (flags & O_DIRECTORY && !bind->directory)
			return -ENOTDIR;
		return (int)own(SYS_fcntl, (uint64_t)bind->fd, F_DUPFD_CLOEXEC, 0, 0);
	}
	return own_look(h->at, name, flags);
}

/* Enters a directory by the names of its path, none of which may be a link. */
static int enter_by_name(struct here *h, char *path)
{
	char *name, *save;
	bool bound;
	int r = enter_top(h);

	for (name = strtok_r(path, "/", &save); name && !r; name = strtok_r(NULL, "/", &save)) {
		char next[LIND_PATH_MAX];

		if (!(r = lind_here_append(h, name, next)) &&
		    !(r = lind_here_take(h, lind_here_look(h, name, O_DIRECTORY, &bound))))
			memcpy(h->text, next, strlen(next) + 1);
	}
	return r;
}

/* Goes one directory up by names, where the view may put something else there than the kernel. */
static int climb_by_name(struct here *h)
{
	char path[LIND_PATH_MAX], *slash;

	memcpy(path, h->text, strlen(h->text) + 1);
	if ((slash = strrchr(path, '/')))
		*slash = 0;
	return enter_by_name(h, path);
}

int lind_here_up(struct here *h)
{
	char text[LIND_PATH_MAX];
	int r;

	if (!h->text[0])
		return 0;
	if (h->view)
		return climb_by_name(h);
	if ((r = is_at_root(h)))
		return r < 0 ? r : 0;
	memcpy(text, h->text, strlen(h->text) + 1);
	r = lind_here_elsewhere(
	    h, (int)own(SYS_openat, (uint64_t)h->at, (uintptr_t)"..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
	if (r != -ENOENT)
		return r;
	/* The kernel does not know directories that another grate keeps. */
	memcpy(h->text, text, strlen(text) + 1);
	return climb_by_name(h);
}

/*
 * Where the kernel has no name for the directory, because another grate keeps it, that grate says
 * where it is, and the directory there has to be the one that was opened.
 */
int lind_here_working(struct here *h, struct lind_arg dir)
{
	char path[PATH_MAX];
	struct stat was, is;
	int64_t r = lind_here_elsewhere(h, lind_here_argument(dir));

	if (r != -ENOENT || h->view || h->at < 0 || own(SYS_fstat, (uint64_t)h->at, (uintptr_t)&was, 0, 0))
		return (int)r;
	if (lind_call(SYS_getcwd, dir.cage, lind_mine(path), number(sizeof path), number(0), number(0), number(0),
		number(0)) < 0 ||
	    *path != '/')
		return -ENOENT;
	if ((r = enter_by_name(h, path)) || (r = own(SYS_fstat, (uint64_t)h->at, (uintptr_t)&is, 0, 0)))
		return (int)r;
	return was.st_dev == is.st_dev && was.st_ino == is.st_ino ? 0 : -ENOENT;
}
