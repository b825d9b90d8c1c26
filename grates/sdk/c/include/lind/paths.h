/*
 * Paths in a grate: where one leads, for policies that go by paths.
 *
 * A grate that looks at a path's text and then passes the text on has checked nothing: a symbolic
 * link or a directory on the way may be another one when the call is made. Here the path is walked
 * by the grate, directory by directory, with descriptors of the grate's own that no client can
 * touch; and what was found is what the call is then made on, by a directory's descriptor and one
 * name in it, without following links.
 *
 *	static int decide(const struct lind_call *c, unsigned effect, const struct lind_place *place,
 *	    void *arg)
 *	{
 *		return effect & LIND_CHANGES && !lind_path_below(place->path, "/tmp") ? -EROFS : 0;
 *	}
 *
 *	static int64_t on_path_call(const struct lind_call *c)
 *	{
 *		return lind_path_call(c, NULL, decide, NULL);
 *	}
 *
 * docs/path-policies.md says which races remain.
 */
#ifndef LIND_PATHS_H
#define LIND_PATHS_H

#include <limits.h>
#include <lind/raw.h>
#include <lind/path_table.h>
#include <stdbool.h>
#include <sys/stat.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Effects that change something, once LIND_DOES_OPEN has been taken apart. */
#define LIND_CHANGES \
	(LIND_DOES_WRITE | LIND_DOES_CREATE | LIND_DOES_REMOVE | LIND_DOES_META | LIND_DOES_LINK | LIND_DOES_MOUNT)

/* The room for a path from the root: a working directory may have one of PATH_MAX, and a path
 * from there as well. */
#define LIND_PATH_MAX (2 * PATH_MAX)

/* Where a path leads. Descriptors are the grate's; lind_place_done closes them. */
struct lind_place {
	int dir;  /* the directory it is in (O_PATH); -1 if it was reached by a descriptor and not by a name */
	int object;  /* the file itself; -1 if there is none */
	bool bound;  /* the view put it there */
	bool slash;  /* slashes followed a name that was not looked through */
	struct stat st;  /* of the object */
	char name[NAME_MAX + 1]; /* in dir; `.` for dir itself */
	char path
	    [LIND_PATH_MAX]; /* without links, `.` and `..`; what does not begin with / is in no directory (a pipe, memory) */
};

/*
 * Another tree than the kernel's root, for what clients see: a root of its own, directories and
 * files in other places, and names that are not there. Made once, before clients run.
 */
struct lind_view;

struct lind_view *lind_view_new(const char *root); /* NULL if it cannot be opened; errno says why */
int lind_view_bind(struct lind_view *view, const char *at, const char *what); /* 0, or the negative of an errno */
int lind_view_hide(struct lind_view *view, const char *at);
/* The path, in the view, of a descriptor of the grate's. 0, or -ENOENT if it is not in the view. */
int lind_view_name(const struct lind_view *view, int fd, char path[PATH_MAX]);
/* The view's path of a path of the kernel's. 0, or -ENOENT if it is not in the view. */
int lind_view_text(const struct lind_view *view, const char *real, char path[PATH_MAX]);
/* Whether a path is one that the view put something at, or above one: it may be neither moved
 * nor removed. */
bool lind_view_is_fixed(const struct lind_view *view, const char *path);
/* Whether anything in the directory `path` is hidden. */
bool lind_view_hides_in(const struct lind_view *view, const char *path);
/* Whether `name` in the directory `path` (of the view) is hidden. */
bool lind_view_hides(const struct lind_view *view, const char *path, const char *name);

enum {
	LIND_WALK_FOLLOW = 1, /* a link at the end */
	LIND_WALK_EMPTY = 2, /* an empty path is `dir` itself */
	LIND_WALK_NAME = 4, /* the last name is to be made or taken away: slashes after it do not look through it */
};

/*
 * Walks `path`, a string of the grate's, from `dir` (an argument of a call, AT_FDCWD included), as
 * `target` would, from its own root directory. 0 also where only the last name is missing; then
 * place->object is -1. The negative of an errno otherwise, and nothing to be done. `view` may be
 * NULL.
 */
int lind_path_walk(const struct lind_view *view, uint64_t target, struct lind_arg dir, const char *path, unsigned how,
    struct lind_place *place);

/* The file behind a descriptor argument, and its path. */
int lind_path_of_fd(const struct lind_view *view, struct lind_arg fd, struct lind_place *place);

void lind_place_done(struct lind_place *place);

/*
 * Checks what a client may do, for a grate that acts for it: the grate's own calls have the grate's
 * rights. `object` is a descriptor of the grate's, `mode` a sum of R_OK, W_OK, X_OK. 0, or the
 * negative of the errno that the client would get. A walk has asked about the directories on the
 * way.
 */
int64_t lind_client_may(uint64_t target, int object, int mode);
/* The same for the extended attribute `name`. */
int64_t lind_client_may_attribute(uint64_t target, const struct lind_place *place, const char *name, bool write);
bool lind_client_can(uint64_t target, unsigned capability);
/* The user or group as which the client uses files. */
uint32_t lind_client_file_id(uint64_t target, bool group);

/* Whether `path`, which is resolved, is `prefix` or below it. `.`, `..` and double slashes in the
 * prefix have no effect, nor has a slash at its end; symbolic links in it are not followed. The
 * grate ends with a message if the prefix does not begin with a slash: such a policy would let
 * everything pass. */
bool lind_path_below(const char *path, const char *prefix);

/* Removes `.`, `..`, double and trailing slashes from an absolute path of an option. NULL, or
 * what is wrong with it. */
const char *lind_path_clean(const char *from, char to[PATH_MAX]);

/* The uses that a call makes of files; NULL for a call that does not use files. */
const struct lind_file_use *lind_file_use(uint32_t nr);

/*
 * Decides about one path of a call: 0, or the negative of an errno for the client. `effect` is a
 * sum of LIND_DOES_*, where LIND_DOES_OPEN has been replaced by what the flags of open mean. The
 * path may be missing where the call makes or removes it.
 */
typedef int lind_path_decide_fn(const struct lind_call *c, unsigned effect, const struct lind_place *place, void *arg);

/*
 * Serves a call that takes paths: copies them, walks them, asks `decide` about each, and makes the
 * call on what was found. The answer for the client. Calls of which the kernel knows nothing are
 * ENOSYS. `decide` may be NULL.
 */
int64_t lind_path_call(const struct lind_call *c, const struct lind_view *view, lind_path_decide_fn *decide, void *arg);

/*
 * Serves a call that changes files through descriptors (ftruncate, fchmod, ...): takes hold of the
 * file, asks `decide`, and makes the call on that file.
 */
int64_t lind_path_fd_call(
    const struct lind_call *c, const struct lind_view *view, lind_path_decide_fn *decide, void *arg);

/* Serves bind, whose address may be a path: the socket is made in the directory that was found. */
int64_t lind_path_bind(const struct lind_call *c, const struct lind_view *view, lind_path_decide_fn *decide, void *arg);

/* Serves connect and sendto to a path in a view: the socket that was found is what is reached. */
int64_t lind_path_reach(const struct lind_call *c, const struct lind_view *view);

/* Serves execve and execveat of programs in a view, which may be NULL, and spawn without one.
 * `decide`, if it is not NULL, is asked about the program, and where that is a script about the
 * interpreters that its first line leads to. */
int64_t lind_path_exec(const struct lind_call *c, const struct lind_view *view, lind_path_decide_fn *decide, void *arg);

/* Hands a descriptor of the grate's to a client, and closes it here: the client's number, or the
 * negative of an errno. */
int64_t lind_give_fd(uint64_t target, int fd, bool cloexec);

#ifdef __cplusplus
}
#endif
#endif
