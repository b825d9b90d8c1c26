/* Programs of a view: run by a descriptor, so that what was found is what runs, and scripts by
 * interpreters of the view. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "../core/program.h"
#include "../core/script.h"
#include "walk.h"

#define AGAIN INT64_MAX

/* Opens the program that was found. A program for spawn need not be executable, unless it is a
 * script. */
static int64_t open_program(const struct lind_call *c, const struct lind_place *place)
{
	char name[40];
	int64_t r;

	if (place->object < 0)
		return -ENOENT;
	if (S_ISLNK(place->st.st_mode))
		return -ELOOP;
	if (!S_ISREG(place->st.st_mode))
		return -EACCES;
	if (c->nr != SYS_spawn && (r = lind_client_may(c->target, place->object, X_OK)))
		return r;
	snprintf(name, sizeof name, "/proc/self/fd/%d", place->object);
	return own(SYS_openat, (uint64_t)(int64_t)AT_FDCWD, (uintptr_t)name, O_RDONLY | O_CLOEXEC, 0);
}

/* How a script is known to its interpreter. */
struct known {
	char name[PATH_MAX];
	bool leads_nowhere; /* it begins at a descriptor that exec closes */
};

/* A script that is named from a descriptor is known by a name that begins there. */
static int64_t known_as(const struct lind_call *c, struct lind_arg dir, const char *path, struct known *known)
{
	int fd = (int)(uint32_t)dir.value;
	struct lind_arg none = number(0);

	known->leads_nowhere = false;
	if (fd == AT_FDCWD || *path == '/') {
		strcpy(known->name, path);
		return 0;
	}
	if (snprintf(known->name, sizeof known->name, "/dev/fd/%d%s%s", fd, *path ? "/" : "", path) >=
	    (int)sizeof known->name)
		return -ENAMETOOLONG;
	int64_t flags =
	    lind_call(SYS_fcntl, c->target, dir, (struct lind_arg){ F_GETFD, c->target }, none, none, none, none);
	known->leads_nowhere = flags > 0 && flags & FD_CLOEXEC;
	return 0;
}

/* Runs a program that is not a script. The kernel itself follows the path of spawn, so the grate
 * passes a path of its own. */
static int64_t begin(const struct lind_call *c, int fd, const char *found, struct lind_arg argv, struct lind_arg envp)
{
	struct lind_call own = *c;

	if (c->nr != SYS_spawn)
		return lind_call(SYS_execveat, c->target, number((uint64_t)fd), lind_mine(""), argv, envp,
		    number(AT_EMPTY_PATH), number(0));
	own.args[0] = lind_mine(found);
	own.args[1] = argv;
	return lind_forward(&own);
}

/* One look: runs the program that was found, or, if it is a script, says by AGAIN that `path`,
 * `argv` are now its interpreter's. */
static int64_t run(const struct lind_call *c, int fd, const char *found, char *path, struct known *known,
    struct lind_script_words *w, struct lind_arg *argv, struct lind_arg envp)
{
	char head[SCRIPT_HEAD + 1], *name;
	int64_t length = own(SYS_pread64, (uint64_t)fd, (uintptr_t)head, SCRIPT_HEAD, 0), r;

	if (length < 0)
		return length;
	head[length] = 0;
	if (!lind_is_script_(head))
		return begin(c, fd, found, *argv, envp);
	if (c->nr == SYS_spawn && (r = lind_client_may(c->target, fd, X_OK)))
		return r;
	if ((r = lind_script_(head, known->name, w, argv, &name)))
		return r;
	if (known->leads_nowhere)
		return -ENOENT;
	strcpy(path, name);
	*known = (struct known){ 0 };
	strcpy(known->name, name);
	return AGAIN;
}

int64_t lind_path_exec(const struct lind_call *c, const struct lind_view *view, lind_path_decide_fn *decide, void *arg)
{
	bool at = c->nr == SYS_execveat;
	uint32_t flags = at ? lind_arg32(c, 4) : 0;
	struct lind_arg dir = at ? c->args[0] : (struct lind_arg){ (uint64_t)(int64_t)AT_FDCWD, c->target };
	struct lind_arg argv = c->args[at ? 2 : 1], envp = c->args[at ? 3 : 2];
	unsigned how =
	    (flags & AT_SYMLINK_NOFOLLOW ? 0 : LIND_WALK_FOLLOW) | (flags & AT_EMPTY_PATH ? LIND_WALK_EMPTY : 0);
	struct lind_script_words w = { 0 };
	struct known known;
	char path[PATH_MAX];
	int64_t r = lind_read_string(c->args[at], path, sizeof path);

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (r >= 0 && !at && program_is_marked(path))
		return lind_forward(c);
	if (r >= 0)
		r = known_as(c, dir, path, &known);
	for (int depth = 0; r >= 0; depth++) {
		struct lind_place place;
		int64_t fd;

		if ((r = depth > SCRIPT_INTERPRETERS ? -ELOOP
						     : lind_path_walk(view, c->target, dir, path, how, &place)))
			break;
		r = place.object >= 0 && decide ? decide(c, LIND_DOES_EXEC, &place, arg) : 0;
		r = fd = r ? r : open_program(c, &place);
		lind_place_done(&place);
		if (fd < 0)
			break;
		r = run(c, (int)fd, place.path, path, &known, &w, &argv, envp);
		own_close((int)fd);
		if (r != AGAIN)
			break;
		how = LIND_WALK_FOLLOW;
		dir.value = (uint64_t)(int64_t)AT_FDCWD;
	}
	lind_script_done_(&w);
	return r;
}
