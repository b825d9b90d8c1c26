/*
 * Where a path leads: the client's text, read once, is walked name by name, links and `..`
 * included. Names on the way to a prefix are taken to be directories, as mount points are: nobody
 * behind us may move or remove them. Below a prefix the grates inside know best: a name there is a
 * link to us if it is one outside and they say the same, or, where `..` makes it matter, if they
 * say so.
 */
#include <fcntl.h>
#include <lind/names.h>
#include <stdlib.h>
#include "kinds.h"
#include "links.h"
#include "where.h"

#define PREFIXES 16

static struct {
	char path[PATH_MAX];
	size_t length;
} prefixes[PREFIXES];
static size_t prefix_count;

struct walk {
	uint64_t cage;   /* for whom */
	bool thorough;   /* `..` is in the text */
	struct lind_names names;
	struct where *w;
};

const char *add_prefix(const char *value)
{
	size_t length = strlen(value);

	while (length > 1 && value[length - 1] == '/')
		length--;
	if (value[0] != '/' || length >= PATH_MAX || strstr(value, "//") || strstr(value, "/./") ||
	    strstr(value, "/../") || (length >= 2 && !strncmp(value + length - 2, "/.", 2)) ||
	    (length >= 3 && !strncmp(value + length - 3, "/..", 3)))
		return "must be an absolute path without . and ..";
	if (prefix_count == PREFIXES)
		return "too many of them";
	memcpy(prefixes[prefix_count].path, value, length);
	prefixes[prefix_count++].length = length == 1 ? 0 : length;
	by_path = true;
	return NULL;
}

/* Whether `path` is `of` or below; the root has no length. */
static bool below(const char *path, const char *of, size_t length)
{
	return !strncmp(path, of, length) && (!path[length] || path[length] == '/' || !length);
}

bool below_a_prefix(const char *path)
{
	for (size_t i = 0; i < prefix_count; i++)
		if (below(path, prefixes[i].path, prefixes[i].length))
			return true;
	return false;
}

/* On the way to a prefix, or one itself. */
static bool leads_to_a_prefix(const char *path)
{
	size_t length = strlen(path);

	for (size_t i = 0; i < prefix_count; i++)
		if (below(prefixes[i].path, path, length))
			return true;
	return false;
}

bool above_a_prefix(const char *path)
{
	return leads_to_a_prefix(path) && !below_a_prefix(path);
}

/* The length of a link's target, 0 for a file that is not a link, or the error of a name that
 * leads nowhere. */
static int64_t is_link(const struct walk *walk, const char *path, char target[PATH_MAX])
{
	bool below = below_a_prefix(path);
	char outside[PATH_MAX];
	int64_t r = read_link(walk->cage, path, target, below && walk->thorough);

	if (r == -EINVAL || !below || walk->thorough)
		return r == -EINVAL ? 0 : r;
	if (r <= 0)
		return 0;
	strcpy(outside, target);
	r = read_link(walk->cage, path, target, true);
	return r > 0 && !strcmp(outside, target) ? r : 0;
}

/* /proc/ID/fd/N and /proc/ID/task/TID/fd/N are the open file, whatever its name. */
static bool open_file_inside(const char *path)
{
	char *end;
	unsigned long cage, fd;
	const char *name = strstr(path, "/fd/");

	if (strncmp(path, "/proc/", 6) || !name)
		return false;
	cage = strtoul(path + 6, &end, 10);
	if (end == path + 6 || (end != name && strncmp(end, "/task/", 6)))
		return false;
	fd = strtoul(name + 4, &end, 10);
	return end != name + 4 && !*end && cage && fd_inside((struct lind_arg){ fd, cage });
}

static void up(char *path)
{
	char *slash = strrchr(path, '/');

	if (slash)
		*slash = 0;
}

/* `..` of a file that is not a directory is an error, even if the text of the path could be
 * shortened. */
static int is_directory(const struct walk *walk, char *path)
{
	size_t length = strlen(path);
	char target[PATH_MAX];
	int64_t r;

	if (!length || leads_to_a_prefix(path))
		return 0;
	if (length + 3 > PATH_MAX)
		return -ENAMETOOLONG;
	strcpy(path + length, "/.");
	r = read_link(walk->cage, path, target, below_a_prefix(path));
	path[length] = 0;
	return r == -EINVAL || r >= 0 ? 0 : (int)r;
}

/* One name; more come after it or not. */
static int step(struct walk *walk, const char *name, size_t length, bool last, bool follow)
{
	char *path = walk->w->path, target[PATH_MAX];
	size_t end = strlen(path);
	int r;

	if (length == 1 && name[0] == '.')
		return 0;
	if (length == 2 && name[0] == '.' && name[1] == '.') {
		if ((r = is_directory(walk, path)))
			return r;
		up(path);
		return 0;
	}
	if (end + 1 + length >= PATH_MAX)
		return -ENAMETOOLONG;
	path[end] = '/';
	memcpy(path + end + 1, name, length);
	path[end + 1 + length] = 0;
	if (leads_to_a_prefix(path))
		return 0;
	/* The link of an open file says its name: to whoever knows it. */
	if (last && !follow) {
		walk->w->inside = open_file_inside(path);
		return 0;
	}
	/* A missing last name may be about to be made. */
	if ((r = (int)is_link(walk, path, target)) <= 0)
		return last ? 0 : r;
	if (open_file_inside(path)) {
		walk->w->inside = true;
		lind_names_end(&walk->names);
		return 0;
	}
	if ((r = lind_names_follow(&walk->names, target)) < 0)
		return r;
	up(path);
	if (r == 1)
		path[0] = 0;
	return 0;
}

static int walk_text(struct walk *walk, bool follow)
{
	struct lind_name name;
	int r = 0;

	/* A link with a slash after it is followed. */
	while (!r && lind_names_next(&walk->names, &name))
		r = step(walk, name.text, name.length, name.last && !name.slash, follow);
	return r;
}

static bool has_dotdot(const char *text)
{
	for (const char *at = text; (at = strstr(at, "..")); at += 2)
		if ((at == text || at[-1] == '/') && (!at[2] || at[2] == '/'))
			return true;
	return false;
}

/* Where a relative path starts, in words; false if it starts inside and nobody knows where. */
static int start_at(const struct lind_call *c, int dir, struct where *w)
{
	bool at_cwd = dir < 0 || (int)lind_arg32(c, dir) == AT_FDCWD;
	uint64_t cage = dir < 0 ? c->target : c->args[dir].cage;
	struct lind_arg none = { 0, cage };
	struct client *client;
	int64_t r;

	if (!cage)
		return -EPERM;
	client = lind_client(cage);
	w->inside = at_cwd ? client->cwd_inside : fd_inside(c->args[dir]);
	w->path[0] = 0;
	if (w->inside && at_cwd) {
		pthread_mutex_lock(&client->lock);
		if (client->cwd)
			strcpy(w->path, client->cwd);
		pthread_mutex_unlock(&client->lock);
		return 0;
	}
	if (w->inside)
		return 0;
	if (at_cwd) {
		r = lind_call(
		    SYS_getcwd, cage, lind_mine(w->path), (struct lind_arg){ PATH_MAX, cage }, none, none, none, none);
	} else {
		r = fd_link(cage, lind_arg32(c, dir), w->path);
		if (r == -ENOENT)
			r = -EBADF;
	}
	if (r < 0)
		return (int)r;
	if (!strcmp(w->path, "/"))
		w->path[0] = 0;
	return 0;
}

/* The grates inside do not know what links outside say, nor the kernel where a client inside is:
 * who gets the call is told where the path leads. A slash at its end stays. */
static int say_where(struct where *w, size_t length)
{
	size_t end = strlen(w->path);
	bool slash = w->text[length - 1] == '/' || (length >= 2 && !strcmp(w->text + length - 2, "/."));

	if (end + 2 > sizeof w->text)
		return -ENAMETOOLONG;
	w->rewritten = strcmp(w->text, w->path) || slash || !end;
	strcpy(w->text, w->path);
	if (slash || !end)
		strcpy(w->text + end, "/");
	return 0;
}

int look(const struct lind_call *c, int dir, int path, bool follow, struct where *w)
{
	ssize_t length = 0;

	w->text[0] = 0;
	w->start_only = !c->args[path].value;
	if (!w->start_only && (length = lind_read_string(c->args[path], w->text, sizeof w->text)) < 0)
		return (int)length;
	return look_at(c, dir, follow, w);
}

int look_at(const struct lind_call *c, int dir, bool follow, struct where *w)
{
	struct walk walk = { .cage = c->target, .w = w };
	size_t length = strlen(w->text);
	bool from_inside;
	int r;

	w->path[0] = 0;
	w->inside = w->rewritten = false;
	if (w->text[0] != '/') {
		if ((r = start_at(c, dir, w)))
			return r;
		if (w->inside && !w->path[0])
			return 0;
	}
	if (!length)
		return 0;
	from_inside = w->inside;
	w->inside = false;
	walk.thorough = has_dotdot(w->text);
	if ((r = lind_names_begin(&walk.names, w->text)) || (r = walk_text(&walk, follow)))
		return r;
	if (w->inside)
		return 0;
	w->inside = below_a_prefix(w->path);
	return w->inside || from_inside ? say_where(w, length) : 0;
}
