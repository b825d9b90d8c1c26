/*
 * Where a path leads. A walk is inside, at a node, or outside, at an absolute path that is taken apart by
 * its text alone: symbolic links out there are not ours to follow. It goes in where that text becomes the
 * mount prefix, and out by `..` from the root, by an absolute link, or by a directory that stands for an
 * outside one.
 */
#include <unistd.h>
#include "imfs_core.h"

struct walk {
	const struct imfs *fs;
	const struct imfs_cred *cred;
	struct imfs_node *node;		/* NULL: outside */
	char rest[IMFS_PATH];		/* what is still to go; links are put in front */
	size_t at;			/* where in rest */
	int links;
	enum imfs_follow follow;
	struct imfs_at *out;		/* out->path is where we are while outside */
};

static void arrive(struct walk *w)
{
	if (!strcmp(w->out->path, w->fs->prefix)) {
		w->node = w->fs->root;
		w->out->entered = true;
	}
}

/* Leaves for the outside path of a directory of ours. */
static int leave(struct walk *w, const struct imfs_node *dir)
{
	int r = imfs_node_path(w->fs, dir, w->out->path, sizeof w->out->path);

	w->node = NULL;
	return r < 0 ? r : 0;
}

static int outside_step(struct walk *w, const char *name, size_t length)
{
	char *path = w->out->path;
	size_t end = strlen(path);

	if (length == 1 && name[0] == '.')
		return 0;
	if (length == 2 && name[0] == '.' && name[1] == '.') {
		char *slash = strrchr(path, '/');

		if (slash)
			*slash = 0;
	} else {
		if (end + 1 + length >= IMFS_PATH)
			return -ENAMETOOLONG;
		path[end] = '/';
		memcpy(path + end + 1, name, length);
		path[end + 1 + length] = 0;
	}
	arrive(w);
	return 0;
}

/* Puts a link's target before what is still to go. */
static int expand(struct walk *w, const struct imfs_node *link)
{
	size_t target = strlen(link->target), left = strlen(w->rest + w->at);

	if (++w->links > IMFS_LINKS_MAX)
		return -ELOOP;
	if (target + left + 1 > sizeof w->rest)
		return -ENAMETOOLONG;
	memmove(w->rest + target, w->rest + w->at, left + 1);
	memcpy(w->rest, link->target, target);
	w->at = 0;
	if (w->rest[0] == '/') {
		w->node = w->out->dir = NULL;
		w->out->path[0] = 0;
		arrive(w);
	}
	return 0;
}

static int up(struct walk *w)
{
	if (w->node != w->fs->root) {
		w->node = w->node->dir.parent;
		return 0;
	}
	if (!w->fs->prefix[0])
		return 0;
	strcpy(w->out->path, w->fs->prefix);
	w->node = NULL;
	return outside_step(w, "..", 2);
}

static bool follows(enum imfs_follow follow, bool slash)
{
	switch (follow) {
	case IMFS_FOLLOW:
		return true;
	case IMFS_NOFOLLOW:
		return slash;
	case IMFS_FOLLOW_OR_MAKE:
		return !slash;
	default:
		return false;
	}
}

/* One name, inside, with more to come or not. `last`: nothing but slashes follows. */
static int inside_step(struct walk *w, const char *name, size_t length, bool last)
{
	struct imfs_at *out = w->out;
	struct imfs_entry *e;
	int r;

	if (!S_ISDIR(w->node->mode))
		return -ENOTDIR;
	if ((r = imfs_may(w->node, w->cred, X_OK)))
		return r;
	if (length > IMFS_NAME)
		return -ENAMETOOLONG;
	out->dir = w->node;
	out->last = IMFS_NORMAL;
	if (length == 1 && name[0] == '.') {
		out->last = IMFS_DOT;
		return 0;
	}
	if (length == 2 && name[0] == '.' && name[1] == '.') {
		out->last = IMFS_DOTDOT;
		return up(w);
	}
	memcpy(out->name, name, length);
	out->name[length] = 0;
	out->length = (uint16_t)length;
	e = imfs_dir_find(w->node, name, length);
	if (last)
		out->node = e ? e->node : NULL;
	if (!e)
		return last ? 0 : -ENOENT;
	if (e->node->outside)
		return leave(w, e->node);
	if (S_ISLNK(e->node->mode) && (!last || follows(w->follow, out->slash))) {
		if (last)
			out->node = NULL;
		return expand(w, e->node);
	}
	w->node = e->node;
	return 0;
}

static int step(struct walk *w)
{
	char *name = w->rest + w->at, *end, *next;
	bool last;

	end = name + strcspn(name, "/");
	next = end + strspn(end, "/");
	last = !*next;
	/* The slashes stay, for a link that is put in front of them. */
	w->at = (size_t)(end - w->rest);
	w->out->slash = last && next != end;
	if (w->node)
		return inside_step(w, name, (size_t)(end - name), last);
	return outside_step(w, name, (size_t)(end - name));
}

/* What the walk came to, where the last step did not name it. */
static int finish(struct walk *w)
{
	struct imfs_at *out = w->out;

	if (!w->node) {
		out->outside = true;
		if (!out->path[0])
			strcpy(out->path, "/");
		return 0;
	}
	if (!out->dir || out->last != IMFS_NORMAL) {
		out->node = w->node;
		if (!out->dir) {
			out->dir = w->node;
			out->last = IMFS_ROOT;
		}
	}
	return 0;
}

int imfs_walk(const struct imfs *fs, const struct imfs_cred *cred, struct imfs_node *start, const char *start_path,
	const char *path, enum imfs_follow follow, struct imfs_at *at)
{
	struct walk w = { .fs = fs, .cred = cred, .node = start, .follow = follow, .out = at };
	size_t length = strlen(path);
	int r;

	at->outside = at->entered = at->slash = false;
	at->dir = at->node = NULL;
	at->last = IMFS_NORMAL;
	at->length = 0;
	at->path[0] = 0;
	if (!length)
		return -ENOENT;
	if (length >= sizeof w.rest)
		return -ENAMETOOLONG;
	memcpy(w.rest, path, length + 1);
	if (path[0] == '/' || !start) {
		w.node = NULL;
		if (path[0] != '/') {
			if (!start_path || strlen(start_path) >= IMFS_PATH)
				return -ENOENT;
			strcpy(at->path, strcmp(start_path, "/") ? start_path : "");
		}
		arrive(&w);
	} else
		at->entered = true;
	w.at = strspn(w.rest, "/");
	while (w.rest[w.at]) {
		bool was_outside = !w.node;

		if ((r = step(&w)))
			return r;
		/* Coming in through the prefix: the node was named by no step of ours. */
		if (was_outside && w.node) {
			at->dir = NULL;
			at->node = NULL;
		}
		w.at += strspn(w.rest + w.at, "/");
	}
	return finish(&w);
}
