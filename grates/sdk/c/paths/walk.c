/* Where a path leads: a walk with descriptors of ours, one directory after the other. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <lind/names.h>
#include "here.h"

struct walk {
	struct here here;
	unsigned how;
	struct lind_place *out;
	struct lind_names names; /* what is still to go */
	const char *dots;  /* the last name, if it was `..` */
};

/* Our own descriptor of an argument's file. The grate runs no other program that could inherit
 * it. */
static int own_hold(struct lind_arg fd)
{
	return (int)lind_call(SYS_dup, lind_self_, fd, number(0), number(0), number(0), number(0), number(0));
}

/* Puts a link's text before what is still to go. */
static int expand(struct walk *w, const char *text)
{
	int r = lind_names_follow(&w->names, text);

	return r == 1 ? lind_here_root(&w->here) : r;
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
		r = lind_here_elsewhere(
		    &w->here, (int)own(SYS_openat, (uint64_t)fd, (uintptr_t)".", O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
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
	(void)lind_view_name(w->here.view, fd, out->path);
	return 1;
}

/*
 * A link in /proc, as the client sees it. `self` and the like have texts; those that stand for a
 * file lead to it whatever it is called. 1 if the walk is over.
 */
static int follow_in_proc(struct walk *w, const char *name)
{
	char text[PATH_MAX], directory[PATH_MAX];
	struct lind_arg fd, at = number((uint64_t)w->here.at);
	int64_t length = lind_call(SYS_readlinkat, w->here.target, at, lind_mine(name), lind_mine(text),
	    number(PATH_MAX - 1), number(0), number(0));
	size_t end;
	int r;

	if (length < 0)
		return (int)length;
	text[length] = 0;
	if ((r = lind_kernel_name(w->here.at, directory)))
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
		if (is_of_process(directory, w->here.target))
			return lind_here_working(
			    &w->here, (struct lind_arg){ (uint64_t)(int64_t)AT_FDCWD, w->here.target });
		return lind_here_elsewhere(&w->here,
		    (int)own(SYS_openat, (uint64_t)w->here.at, (uintptr_t)name, O_PATH | O_DIRECTORY | O_CLOEXEC, 0));
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

	if (!own(SYS_fstatfs, (uint64_t)w->here.at, (uintptr_t)&fs, 0, 0) && fs.type == PROC_SUPER_MAGIC)
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
	int r = (int)own(SYS_fstat, (uint64_t)w->here.at, (uintptr_t)&out->st, 0, 0);

	if (r)
		return r;
	if ((out->object = (int)own(SYS_fcntl, (uint64_t)w->here.at, F_DUPFD_CLOEXEC, 0, 0)) < 0)
		return out->object;
	out->dir = w->here.at;
	w->here.at = -1;
	/* The kernel knows best what may not be made or removed under such a name, and it acts on none
	 * of them. */
	strcpy(out->name, w->how & LIND_WALK_NAME && w->dots ? w->dots : ".");
	memcpy(out->path, w->here.text, strlen(w->here.text) + 1);
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
	out->dir = w->here.at;
	w->here.at = -1;
	memcpy(out->name, name, strlen(name) + 1);
	return 1;
}

/* The last name, at which the walk may end. */
static int last_step(struct walk *w, const char *name, bool slash)
{
	struct lind_place *out = w->out;
	bool bound, through = slash && !(w->how & LIND_WALK_NAME);
	int fd, r;

	if ((r = lind_here_append(&w->here, name, out->path)))
		return r;
	out->slash = slash;
	fd = lind_here_look(&w->here, name, 0, &bound);
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

/* Enters the directory `fd`, called `name` here. */
static int enter(struct walk *w, int fd, const char *name)
{
	char path[LIND_PATH_MAX];
	int r = lind_here_append(&w->here, name, path);

	if (r) {
		own_close(fd);
		return r;
	}
	memcpy(w->here.text, path, strlen(path) + 1);
	return lind_here_take(&w->here, fd);
}

/* A name with more to come: a directory, or a link to one. */
static int inner_step(struct walk *w, const char *name)
{
	bool bound;
	int fd = lind_here_look(&w->here, name, O_DIRECTORY, &bound), r;

	if (fd >= 0)
		return enter(w, fd, name);
	if (fd != -ENOTDIR || bound || (fd = own_look(w->here.at, name, 0)) < 0)
		return fd;
	r = (int)own(SYS_fstat, (uint64_t)fd, (uintptr_t)&w->out->st, 0, 0);
	/* A directory has taken the place of a link meanwhile. */
	if (!r && S_ISDIR(w->out->st.st_mode))
		return enter(w, fd, name);
	if (!r)
		r = S_ISLNK(w->out->st.st_mode) ? follow(w, fd, name) : -ENOTDIR;
	own_close(fd);
	return r;
}

/* One name. 1 if the walk is over. */
static int step(struct walk *w, const struct lind_name *next)
{
	char name[NAME_MAX + 1];
	int r;

	if ((r = (int)lind_client_may(w->here.target, w->here.at, X_OK)))
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
		return lind_here_up(&w->here);
	}
	return next->last ? last_step(w, name, next->slash) : inner_step(w, name);
}

static int begin(struct walk *w, struct lind_arg dir, const char *path)
{
	bool working = (uint32_t)dir.value == (uint32_t)AT_FDCWD;

	if (*path == '/')
		return lind_here_root(&w->here);
	if (!*path && !(w->how & LIND_WALK_EMPTY))
		return -ENOENT;
	if (working)
		return lind_here_working(&w->here, dir);
	return *path ? lind_here_elsewhere(&w->here, lind_here_argument(dir)) : arrive(w, own_hold(dir));
}

int lind_path_walk(const struct lind_view *view, uint64_t target, struct lind_arg dir, const char *path, unsigned how,
    struct lind_place *place)
{
	struct walk w = { .here = { .view = view, .target = target, .at = -1 }, .how = how, .out = place };
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
	own_close(w.here.at);
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
