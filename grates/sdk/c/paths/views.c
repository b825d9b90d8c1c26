/* The view that clients have in place of the kernel's root, and names of descriptors. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "walk.h"

/* As lind_path_below, for two names that are resolved. */
static bool is_below(const char *path, const char *prefix)
{
	size_t length = strlen(prefix);

	if (length == 1 && *prefix == '/')
		return *path == '/';
	return !strncmp(path, prefix, length) && (!path[length] || path[length] == '/');
}

const char *lind_path_clean(const char *from, char to[PATH_MAX])
{
	size_t length = 0;

	if (*from != '/')
		return "must begin with /";
	if (strlen(from) >= PATH_MAX)
		return "too long";
	while (*from) {
		size_t n = strcspn(from, "/");

		if (n == 2 && !strncmp(from, "..", 2)) {
			while (length && to[--length] != '/')
				;
		} else if (n && !(n == 1 && *from == '.')) {
			to[length++] = '/';
			memcpy(to + length, from, n);
			length += n;
		}
		from += n;
		from += strspn(from, "/");
	}
	if (!length)
		to[length++] = '/';
	to[length] = 0;
	return NULL;
}

/* Whether lind_path_clean would leave the path as it is. */
static bool is_clean(const char *path)
{
	if (*path != '/')
		return false;
	for (const char *at = path; *at; at += 1 + strcspn(at + 1, "/")) {
		size_t n = strcspn(at + 1, "/");

		if (n <= 2 && !strncmp(at + 1, "..", n) && path[1])
			return false;
	}
	return true;
}

bool lind_path_below(const char *path, const char *prefix)
{
	char clean[PATH_MAX];
	const char *wrong;

	if (is_clean(prefix))
		return is_below(path, prefix);
	if ((wrong = lind_path_clean(prefix, clean)))
		lind_die("lind_path_below: the prefix \"%s\" %s", prefix, wrong);
	return is_below(path, clean);
}

struct lind_view *lind_view_new(const char *root)
{
	struct lind_view *view = calloc(1, sizeof *view);

	if (!view)
		return NULL;
	view->root = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (view->root < 0) {
		free(view);
		return NULL;
	}
	return view;
}

static int add(struct lind_view *view, const char *at, const char *what, int fd, bool directory)
{
	struct lind_bind *more = realloc(view->binds, (view->count + 1) * sizeof *more);
	struct lind_place place;
	char clean[PATH_MAX];

	if (!more)
		return -ENOMEM;
	view->binds = more;
	if (lind_path_clean(at, clean))
		return -EINVAL;
	/* Walks come by where a directory is, not by a link to it. */
	if (!lind_path_walk(view, lind_self_, number(0), clean, LIND_WALK_NAME, &place)) {
		memcpy(clean, place.path, strlen(place.path) + 1);
		lind_place_done(&place);
	}
	if (!(more[view->count].at = strdup(clean)))
		return -ENOMEM;
	if (!(more[view->count].what = strdup(what)))
		return -ENOMEM;
	more[view->count].fd = fd;
	more[view->count++].directory = directory;
	return 0;
}

int lind_view_bind(struct lind_view *view, const char *at, const char *what)
{
	int fd = open(what, O_PATH | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st))
		return -errno;
	return add(view, at, what, fd, S_ISDIR(st.st_mode));
}

int lind_view_hide(struct lind_view *view, const char *at)
{
	return add(view, at, "", -1, false);
}

/* The last one that was put there counts. */
const struct lind_bind *lind_view_at(const struct lind_view *view, const char *path)
{
	for (size_t i = view ? view->count : 0; i--;)
		if (!strcmp(view->binds[i].at, path))
			return &view->binds[i];
	return NULL;
}

bool lind_view_hides(const struct lind_view *view, const char *path, const char *name)
{
	char whole[PATH_MAX];
	const struct lind_bind *bind;

	if (snprintf(whole, sizeof whole, "%s/%s", strcmp(path, "/") ? path : "", name) >= (int)sizeof whole)
		return false;
	bind = lind_view_at(view, whole);
	return bind && bind->fd < 0;
}

int lind_kernel_name(int fd, char path[PATH_MAX])
{
	char link[40];
	int64_t length;

	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	length = own(SYS_readlinkat, (uint64_t)(int64_t)AT_FDCWD, (uintptr_t)link, (uintptr_t)path, PATH_MAX - 1);
	path[length > 0 ? length : 0] = 0;
	if (length < 0)
		return (int)length;
	return *path == '/' ? 0 : -ENOENT;
}

/* `path` is at or below `top`, which `at` stands for in the view: writes the view's path. */
static int below(const char *path, const char *top, const char *at, char to[PATH_MAX])
{
	const char *rest = path + (strcmp(top, "/") ? strlen(top) : 0);
	int n = snprintf(to, PATH_MAX, "%s%s", strcmp(at, "/") ? at : "", *rest == '/' && !rest[1] ? "" : rest);

	if (n >= PATH_MAX)
		return -ENAMETOOLONG;
	if (!n)
		strcpy(to, "/");
	return 0;
}

/* Whether something else is put over a path or above it, so that the path does not lead there.
 * `except` is what it was reached by. */
static bool covered(const struct lind_view *view, const char *path, const struct lind_bind *except)
{
	size_t length = except ? strlen(except->at) : 0;

	for (size_t i = 0; i < view->count; i++)
		if (&view->binds[i] != except && strlen(view->binds[i].at) >= length &&
		    is_below(path, view->binds[i].at))
			return true;
	return false;
}

bool lind_view_is_fixed(const struct lind_view *view, const char *path)
{
	for (size_t i = 0; view && i < view->count; i++)
		if (is_below(view->binds[i].at, path))
			return true;
	return false;
}

bool lind_view_hides_in(const struct lind_view *view, const char *path)
{
	size_t length = strcmp(path, "/") ? strlen(path) : 0;

	for (size_t i = 0; i < view->count; i++)
		if (view->binds[i].fd < 0 && !strncmp(view->binds[i].at, path, length) &&
		    view->binds[i].at[length] == '/' && !strchr(view->binds[i].at + length + 1, '/'))
			return true;
	return false;
}

int lind_view_text(const struct lind_view *view, const char *real, char path[PATH_MAX])
{
	char top[PATH_MAX];
	int r;

	for (size_t i = view->count; i--;) {
		const struct lind_bind *bind = &view->binds[i];

		if (bind->fd >= 0 && !lind_kernel_name(bind->fd, top) && is_below(real, top) &&
		    !below(real, top, bind->at, path) && !covered(view, path, bind))
			return 0;
	}
	if ((r = lind_kernel_name(view->root, top)))
		return r;
	if (is_below(real, top) && !(r = below(real, top, "/", path)) && !covered(view, path, NULL))
		return 0;
	strcpy(path, "(unreachable)");
	return -ENOENT;
}

int lind_view_name(const struct lind_view *view, int fd, char path[PATH_MAX])
{
	char real[PATH_MAX];
	int r = lind_kernel_name(fd, real);

	if (r || !view) {
		memcpy(path, real, strlen(real) + 1);
		return r;
	}
	return lind_view_text(view, real, path);
}
