/* Where a path leads: a walk with descriptors of ours, one directory after the other. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <lind/names.h>
#include "walk.h"

struct walk {
	const struct lind_view *view;
	uint64_t target;
	unsigned how;
	struct lind_place *out;
	int at;    /* the directory we are in */
	char text[LIND_PATH_MAX]; /* its path; empty for the root */
	struct lind_names names; /* what is still to go */
	const char *dots;  /* the last name, if it was `..` */
	bool root_known;
	struct stat root;  /* the target's own root directory */
};

/* Takes `fd` as the directory we are in. */
static int enter(struct walk *w, int fd)
{
	if (fd < 0)
		return fd;
	own_close(w->at);
	w->at = fd;
	return 0;
}

/* The top of all paths here. */
static int enter_top(struct walk *w)
{
	w->text[0] = 0;
	return enter(w,
	    w->view ? (int)own(SYS_openat, (uint64_t)w->view->root, (uintptr_t)".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0)
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
static int open_root(struct walk *w)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct lind_arg here = { (uint64_t)(int64_t)AT_FDCWD, w->target };
	int fd, r;

	pthread_once(&once, learn_top);
	fd = (int)lind_call(SYS_openat, lind_self_, here, lind_mine("/"), number(O_PATH | O_DIRECTORY | O_CLOEXEC),
	    number(0), number(0), number(0));
	if (fd < 0)
		return fd;
	if ((r = (int)own(SYS_fstat, (uint64_t)fd, (uintptr_t)&w->root, 0, 0))) {
		own_close(fd);
		return r;
	}
	w->root_known = true;
	return fd;
}

static int enter_root(struct walk *w)
{
	int r;

	if (w->view)
		return enter_top(w);
	w->text[0] = 0;
	if ((r = enter(w, open_root(w))) || is_same(&w->root, &top))
		return r;
	if ((r = lind_kernel_name(w->at, w->text)))
		return r;
	if (!strcmp(w->text, "/"))
		w->text[0] = 0;
	return 0;
}

/* Whether we are where the target's `..` leads no further. */
static int is_at_root(struct walk *w)
{
	struct stat here;
	int fd, r;

	if (!w->root_known) {
		if ((fd = open_root(w)) < 0)
			return fd;
		own_close(fd);
	}
	if (is_same(&w->root, &top))
		return 0;
	r = (int)own(SYS_fstat, (uint64_t)w->at, (uintptr_t)&here, 0, 0);
	return r ? r : is_same(&here, &w->root);
}

/* Takes a directory that was not reached by a name from where we are. */
static int enter_elsewhere(struct walk *w, int fd)
{
	int r = enter(w, fd);

	if (!r && (r = lind_view_name(w->view, w->at, w->text)))
		return r;
	if (!strcmp(w->text, "/"))
		w->text[0] = 0;
	return r;
}

/* The directory of an argument, which may be another one by its number a moment later. */
static int open_start(struct lind_arg dir)
{
	return (int)lind_call(SYS_openat, lind_self_, dir, lind_mine("."), number(O_PATH | O_DIRECTORY | O_CLOEXEC),
	    number(0), number(0), number(0));
}

/* Our own descriptor of an argument's file. The grate runs no other program that could inherit
 * it. */
static int own_hold(struct lind_arg fd)
{
	return (int)lind_call(SYS_dup, lind_self_, fd, number(0), number(0), number(0), number(0), number(0));
}

/* Writes the path of `name` in the directory we are in. */
static int append(const struct walk *w, const char *name, char to[LIND_PATH_MAX])
{
	size_t length = strlen(w->text), more = strlen(name);

	if (length + more + 2 > LIND_PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(to, w->text, length);
	to[length] = '/';
	memcpy(to + length + 1, name, more + 1);
	return 0;
}

/* Opens `name` in the directory we are in, as seen in the view. `bound` says whether the view
 * put it there. */
static int look(struct walk *w, const char *name, int flags, bool *bound)
{
	char path[LIND_PATH_MAX];
	const struct lind_bind *bind;

	*bound = false;
	if (w->view && w->view->count && !append(w, name, path) && (bind = lind_view_at(w->view, path))) {
		*bound = true;
		if (bind->fd < 0)
			return -ENOENT;
		if (flags & O_DIRECTORY && !bind->directory)
			return -ENOTDIR;
		return (int)own(SYS_fcntl, (uint64_t)bind->fd, F_DUPFD_CLOEXEC, 0, 0);
	}
	return own_look(w->at, name, flags);
}

/* Enters a directory by the names of its path, none of which may be a link. */
static int enter_by_name(struct walk *w, char *path)
{
	char *name, *save;
	bool bound;
	int r = enter_top(w);

	for (name = strtok_r(path, "/", &save); name && !r; name = strtok_r(NULL, "/", &save)) {
		char next[LIND_PATH_MAX];

		if (!(r = append(w, name, next)) && !(r = enter(w, look(w, name, O_DIRECTORY, &bound))))
			memcpy(w->text, next, strlen(next) + 1);
	}
	return r;
}

/* Goes one directory up by names, where the view may put something else there than the kernel. */
static int climb_by_name(struct walk *w)
{
	char path[LIND_PATH_MAX], *slash;

	memcpy(path, w->text, strlen(w->text) + 1);
	if ((slash = strrchr(path, '/')))
		*slash = 0;
	return enter_by_name(w, path);
}

static int up(struct walk *w)
{
	char text[LIND_PATH_MAX];
	int r;

	if (!w->text[0])
		return 0;
	if (w->view)
		return climb_by_name(w);
	if ((r = is_at_root(w)))
		return r < 0 ? r : 0;
	memcpy(text, w->text, strlen(w->text) + 1);
	r = enter_elsewhere(
	    w, (int)own(SYS_openat, (uint64_t)w->at, (uintptr_t)"..", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
	if (r != -ENOENT)
		return r;
	/* The kernel does not know directories that another grate keeps. */
	memcpy(w->text, text, strlen(text) + 1);
	return climb_by_name(w);
}

/*
 * The working directory of whoever `dir` belongs to. Where the kernel has no name for it, because
 * another grate keeps it, that grate says where it is, and the directory there has to be the one
 * that was opened.
 */
static int enter_working(struct walk *w, struct lind_arg dir)
{
	char path[PATH_MAX];
	struct stat was, is;
	int64_t r = enter_elsewhere(w, open_start(dir));

	if (r != -ENOENT || w->view || w->at < 0 || own(SYS_fstat, (uint64_t)w->at, (uintptr_t)&was, 0, 0))
		return (int)r;
	if (lind_call(SYS_getcwd, dir.cage, lind_mine(path), number(sizeof path), number(0), number(0), number(0),
		number(0)) < 0 ||
	    *path != '/')
		return -ENOENT;
	if ((r = enter_by_name(w, path)) || (r = own(SYS_fstat, (uint64_t)w->at, (uintptr_t)&is, 0, 0)))
		return (int)r;
	return was.st_dev == is.st_dev && was.st_ino == is.st_ino ? 0 : -ENOENT;
}

/* Puts a link's text before what is still to go. */
static int expand(struct walk *w, const char *text)
{
	int r = lind_names_follow(&w->names, text);

	return r == 1 ? enter_root(w) : r;
}

/* The descriptor that /proc/PID/fd/NAME is about. */
static int numbered(const char *directory, const char *name, struct lind_arg *fd)
{
	unsigned long long pid, n;
	char *end;

	if (strncmp(directory, "/proc/", 6))
		return -ENOENT;
	pid = strtoull(directory + 6, &end, 10);
	n = strtoull(name, &end, 10);
	if (!pid || pid > UINT32_MAX || *end || n > INT_MAX)
		return -ENOENT;
	*fd = (struct lind_arg){ n, pid };
	return 0;
}

/* Whether a directory in /proc is the one of `pid`. */
static bool is_of_process(const char *directory, uint64_t pid)
{
	char own[40];

	snprintf(own, sizeof own, "/proc/%llu", (unsigned long long)pid);
	return !strcmp(directory, own);
}

/* Ends at a file that has been reached by its descriptor. */
static int arrive(struct walk *w, int fd)
{
	struct lind_place *out = w->out;
	struct stat st;
	int r = fd < 0 ? fd : (int)own(SYS_fstat, (uint64_t)fd, (uintptr_t)&st, 0, 0);

	if (r) {
		own_close(fd);
		return r;
	}
	if (S_ISDIR(st.st_mode)) {
		r = enter_elsewhere(
		    w, (int)own(SYS_openat, (uint64_t)fd, (uintptr_t)".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
		own_close(fd);
		return r;
	}
	if (w->names.rest[w->names.at]) {
		own_close(fd);
		return -ENOTDIR;
	}
	out->object = fd;
	out->st = st;
	/* A name that is not in the view is none. */
	(void)lind_view_name(w->view, fd, out->path);
	return 1;
}

/*
 * A link in /proc, as the client sees it. `self` and the like have texts; those that stand for a
 * file lead to it whatever it is called. 1 if the walk is over.
 */
static int follow_in_proc(struct walk *w, const char *name)
{
	char text[PATH_MAX], directory[PATH_MAX];
	struct lind_arg fd, at = number((uint64_t)w->at);
	int64_t length = lind_call(SYS_readlinkat, w->target, at, lind_mine(name), lind_mine(text),
	    number(PATH_MAX - 1), number(0), number(0));
	size_t end;
	int r;

	if (length < 0)
		return (int)length;
	text[length] = 0;
	if ((r = lind_kernel_name(w->at, directory)))
		return r;
	end = strlen(directory);
	if (end > 3 && !strcmp(directory + end - 3, "/fd")) {
		if ((r = lind_names_link(&w->names)))
			return r;
		if ((r = numbered(directory, name, &fd)))
			return r;
		return arrive(w, own_hold(fd));
	}
	if (!strcmp(name, "cwd")) {
		if ((r = lind_names_link(&w->names)))
			return r;
		/* The kernel's own may be another one, where another grate keeps it. */
		if (is_of_process(directory, w->target))
			return enter_working(w, (struct lind_arg){ (uint64_t)(int64_t)AT_FDCWD, w->target });
		return enter_elsewhere(
		    w, (int)own(SYS_openat, (uint64_t)w->at, (uintptr_t)name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
	}
	return expand(w, text);
}

/* The link `fd`, called `name` here, is followed. 1 if the walk is over. */
static int follow(struct walk *w, int fd, const char *name)
{
	char text[PATH_MAX];
	struct {
		uint64_t type, more[32];
	} fs;
	int64_t length;

	if (!own(SYS_fstatfs, (uint64_t)w->at, (uintptr_t)&fs, 0, 0) && fs.type == PROC_SUPER_MAGIC)
		return follow_in_proc(w, name);
	length = own(SYS_readlinkat, (uint64_t)fd, (uintptr_t)"", (uintptr_t)text, PATH_MAX - 1);
	if (length < 0)
		return (int)length;
	text[length] = 0;
	return expand(w, text);
}

/* The walk ends in the directory we are in. */
static int finish_here(struct walk *w)
{
	struct lind_place *out = w->out;
	int r = (int)own(SYS_fstat, (uint64_t)w->at, (uintptr_t)&out->st, 0, 0);

	if (r)
		return r;
	if ((out->object = (int)own(SYS_fcntl, (uint64_t)w->at, F_DUPFD_CLOEXEC, 0, 0)) < 0)
		return out->object;
	out->dir = w->at;
	w->at = -1;
	/* The kernel knows best what may not be made or removed under such a name, and it acts on none
	 * of them. */
	strcpy(out->name, w->how & LIND_WALK_NAME && w->dots ? w->dots : ".");
	memcpy(out->path, w->text, strlen(w->text) + 1);
	if (!*out->path)
		strcpy(out->path, "/");
	return 1;
}

/* The walk ends at `name` in the directory we are in; `fd` is what is there, or -1. */
static int finish_at(struct walk *w, const char *name, int fd, bool bound)
{
	struct lind_place *out = w->out;

	out->object = fd;
	out->bound = bound;
	if (bound && S_ISDIR(out->st.st_mode)) {
		out->dir = (int)own(SYS_fcntl, (uint64_t)fd, F_DUPFD_CLOEXEC, 0, 0);
		strcpy(out->name, ".");
		return out->dir < 0 ? out->dir : 1;
	}
	if (bound)
		return 1;
	out->dir = w->at;
	w->at = -1;
	memcpy(out->name, name, strlen(name) + 1);
	return 1;
}

/* The last name, at which the walk may end. */
static int last_step(struct walk *w, const char *name, bool slash)
{
	struct lind_place *out = w->out;
	bool bound, through = slash && !(w->how & LIND_WALK_NAME);
	int fd, r;

	if ((r = append(w, name, out->path)))
		return r;
	out->slash = slash;
	fd = look(w, name, 0, &bound);
	if (fd == -ENOENT && !bound)
		return finish_at(w, name, -1, false);
	if (fd < 0)
		return fd;
	if ((r = (int)own(SYS_fstat, (uint64_t)fd, (uintptr_t)&out->st, 0, 0))) {
		own_close(fd);
		return r;
	}
	if (S_ISLNK(out->st.st_mode) && (through || w->how & LIND_WALK_FOLLOW)) {
		r = follow(w, fd, name);
		own_close(fd);
		return r;
	}
	if (through && !S_ISDIR(out->st.st_mode)) {
		own_close(fd);
		return -ENOTDIR;
	}
	return finish_at(w, name, fd, bound);
}

/* A name with more to come: a directory, or a link to one. */
static int inner_step(struct walk *w, const char *name)
{
	char path[LIND_PATH_MAX];
	bool bound;
	int fd = look(w, name, O_DIRECTORY, &bound), r;

	if (fd >= 0) {
		if ((r = append(w, name, path))) {
			own_close(fd);
			return r;
		}
		memcpy(w->text, path, strlen(path) + 1);
		return enter(w, fd);
	}
	if (fd != -ENOTDIR || bound || (fd = own_look(w->at, name, 0)) < 0)
		return fd;
	if (!(r = (int)own(SYS_fstat, (uint64_t)fd, (uintptr_t)&w->out->st, 0, 0)))
		r = S_ISLNK(w->out->st.st_mode) ? follow(w, fd, name) : -ENOTDIR;
	own_close(fd);
	return r;
}

/* One name. 1 if the walk is over. */
static int step(struct walk *w, const struct lind_name *next)
{
	char name[NAME_MAX + 1];
	int r;

	if ((r = (int)lind_client_may(w->target, w->at, X_OK)))
		return r;
	if (next->length > NAME_MAX)
		return -ENAMETOOLONG;
	memcpy(name, next->text, next->length);
	name[next->length] = 0;
	w->dots = NULL;
	if (!strcmp(name, "."))
		return 0;
	if (!strcmp(name, "..")) {
		w->dots = "..";
		return up(w);
	}
	return next->last ? last_step(w, name, next->slash) : inner_step(w, name);
}

static int begin(struct walk *w, struct lind_arg dir, const char *path)
{
	bool working = (uint32_t)dir.value == (uint32_t)AT_FDCWD;

	if (*path == '/')
		return enter_root(w);
	if (!*path && !(w->how & LIND_WALK_EMPTY))
		return -ENOENT;
	if (working)
		return enter_working(w, dir);
	return *path ? enter_elsewhere(w, open_start(dir)) : arrive(w, own_hold(dir));
}

int lind_path_walk(const struct lind_view *view, uint64_t target, struct lind_arg dir, const char *path, unsigned how,
    struct lind_place *place)
{
	struct walk w = { .view = view, .target = target, .how = how, .out = place, .at = -1 };
	struct lind_name name;
	int r;

	place->dir = place->object = -1;
	place->slash = place->bound = false;
	place->name[0] = place->path[0] = 0;
	if ((r = lind_names_begin(&w.names, path)))
		return r;
	r = begin(&w, dir, path);
	while (!r)
		r = lind_names_next(&w.names, &name) ? step(&w, &name) : finish_here(&w);
	own_close(w.at);
	if (r < 0)
		lind_place_done(place);
	return r < 0 ? r : 0;
}

int lind_path_of_fd(const struct lind_view *view, struct lind_arg fd, struct lind_place *place)
{
	int r;

	place->dir = -1;
	place->slash = place->bound = false;
	place->name[0] = 0;
	place->object = own_hold(fd);
	if (place->object < 0)
		return place->object;
	(void)lind_view_name(view, place->object, place->path);
	if ((r = (int)own(SYS_fstat, (uint64_t)place->object, (uintptr_t)&place->st, 0, 0)))
		lind_place_done(place);
	return r;
}

void lind_place_done(struct lind_place *place)
{
	own_close(place->dir);
	own_close(place->object);
	place->dir = place->object = -1;
}
