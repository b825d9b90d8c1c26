/*
 * Where a path leads. A walk is inside, at a node, or outside, at an absolute path that is taken
 * apart by its text alone: symbolic links out there are not ours to follow, but those of /proc that
 * lead to files of ours (magic.c). It goes in there and where that text becomes the mount prefix,
 * and out by `..` from the root, by an absolute link, or by a directory that stands for an outside
 * one. Of a path that passes (passes.c) it comes back by `..`.
 */
#include <unistd.h>
#include "imfs_core.h"

struct walk {
	struct imfs *fs;
	const struct imfs_process *p;
	struct imfs_node *node;  /* NULL: outside */
	const char *rest;  /* what is still to go: of the path, or of `room` once a link was put in front */
	int links;
	enum imfs_follow follow;
	uint32_t resolve;
	struct imfs_node *start; /* which a scoped walk does not leave upwards: this node, */
	const char *start_path;  /* or else this path outside */
	struct imfs_at *out;  /* out->path is where we are while outside */
	const char *tail;  /* what the last step there was beside a name: "." and so on mean what a link leads to */
	char room[IMFS_PATH];
};

static int arrive(struct walk *w)
{
	size_t prefix;
	int r;

	if (!strcmp(w->out->path, w->fs->prefix)) {
		w->node = w->fs->root;
		w->out->entered = true;
		return 0;
	}
	if (!w->fs->pass_count)
		return 0;
	prefix = strlen(w->fs->prefix);
	if (strncmp(w->out->path, w->fs->prefix, prefix) || w->out->path[prefix] != '/' ||
	    imfs_is_passed(w->fs, w->out->path))
		return 0;
	if ((r = imfs_come_back(w->fs, w->out->path, &w->node)))
		return r;
	w->out->entered = true;
	return 0;
}

static int to_start(struct walk *w)
{
	if (w->start) {
		w->node = w->start;
		w->out->entered = true;
		return 0;
	}
	strcpy(w->out->path, strcmp(w->start_path, "/") ? w->start_path : "");
	return arrive(w);
}

/* Leaves for the outside path of a directory of ours. */
static int leave(struct walk *w, const struct imfs_node *dir)
{
	int r = imfs_node_path(w->fs, dir, w->out->path, sizeof w->out->path);

	w->node = NULL;
	return r < 0 ? r : 0;
}

/* Leaves by a name that passes. */
static int pass(struct walk *w, const char *name, size_t length)
{
	char *path = w->out->path;
	int r = leave(w, w->node);
	size_t end = r || !strcmp(path, "/") ? 0 : strlen(path);

	if (r)
		return r;
	if (end + 1 + length >= IMFS_PATH)
		return -ENAMETOOLONG;
	path[end] = '/';
	memcpy(path + end + 1, name, length);
	path[end + 1 + length] = 0;
	w->tail = w->out->slash ? "/" : "";
	return 0;
}

/* To the start of a scoped walk, or to the root. */
static int to_top(struct walk *w)
{
	if (w->resolve & IMFS_BENEATH)
		return -EXDEV;
	w->node = NULL;
	w->out->path[0] = 0;
	return w->resolve & IMFS_IN_ROOT ? to_start(w) : arrive(w);
}

/* A link of /proc is about to be followed. */
static int through_magic(const struct walk *w)
{
	if (w->resolve & (IMFS_NO_MAGICLINKS | IMFS_NO_SYMLINKS))
		return -ELOOP;
	return w->resolve & IMFS_SCOPED ? -EXDEV : 0;
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

static int outside_step(struct walk *w, const char *name, size_t length, bool last)
{
	struct imfs_node *node;
	char *path = w->out->path;
	size_t end = strlen(path);

	w->tail = length == 1 && name[0] == '.'                                  ? "/."
	    : w->out->slash || (length == 2 && name[0] == '.' && name[1] == '.') ? "/"
										 : "";
	if (length == 1 && name[0] == '.')
		return 0;
	if (length == 2 && name[0] == '.' && name[1] == '.') {
		char *slash = strrchr(path, '/');

		if (w->resolve & IMFS_SCOPED && !w->start && !strcmp(*path ? path : "/", w->start_path))
			return w->resolve & IMFS_BENEATH ? -EXDEV : 0;
		if (slash)
			*slash = 0;
	} else {
		if (end + 1 + length >= IMFS_PATH)
			return -ENAMETOOLONG;
		path[end] = '/';
		memcpy(path + end + 1, name, length);
		path[end + 1 + length] = 0;
		if ((!last || follows(w->follow, w->out->slash)) && (node = imfs_magic(w->p, path))) {
			w->node = node;
			w->out->entered = true;
			return through_magic(w);
		}
	}
	return arrive(w);
}

/* Puts a link's target before what is still to go. */
static int expand(struct walk *w, const struct imfs_node *link)
{
	size_t target = strlen(link->target), left = strlen(w->rest);

	if (++w->links > IMFS_LINKS_MAX || w->resolve & IMFS_NO_SYMLINKS)
		return -ELOOP;
	if (target + left + 1 > sizeof w->room)
		return -ENAMETOOLONG;
	memmove(w->room + target, w->rest, left + 1);
	memcpy(w->room, link->target, target);
	w->rest = w->room;
	if (w->rest[0] != '/')
		return 0;
	w->out->dir = NULL;
	return to_top(w);
}

static int up(struct walk *w)
{
	if (w->resolve & IMFS_SCOPED && w->node == w->start)
		return w->resolve & IMFS_BENEATH ? -EXDEV : 0;
	if (w->node != w->fs->root) {
		w->node = w->node->dir.parent;
		return 0;
	}
	if (!w->fs->prefix[0])
		return 0;
	strcpy(w->out->path, w->fs->prefix);
	w->node = NULL;
	return outside_step(w, "..", 2, false);
}

/* Finds the entry of a name, with its attributes. NULL: nothing. */
static int find(struct walk *w, const char *name, size_t length, struct imfs_entry **found)
{
	int r = imfs_dir_list(w->fs, w->node, name, length);

	if (r)
		return r;
	if (!(*found = imfs_dir_find(w->node, name, length)) || !(*found)->node->unknown)
		return 0;
	r = imfs_below->know(w->fs, (*found)->node);
	/* Somebody else has removed it below. */
	if (r == -ENOENT) {
		*found = NULL;
		r = 0;
	}
	return r;
}

/* One name, inside, with more to come or not. `last`: nothing but slashes follows. */
static int inside_step(struct walk *w, const char *name, size_t length, bool last)
{
	struct imfs_at *out = w->out;
	struct imfs_entry *e;
	int r;

	if (!S_ISDIR(w->node->mode))
		return -ENOTDIR;
	if ((r = imfs_may(w->node, &w->p->cred, X_OK)))
		return r;
	/* In a directory that is removed nothing is looked for. */
	if (length > IMFS_NAME) {
		out->too_long = last;
		return w->node->dir.removed ? -ENOENT : -ENAMETOOLONG;
	}
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
	if (w->fs->pass_count && imfs_passes(w->fs, w->node, name, length))
		return pass(w, name, length);
	if ((r = find(w, name, length, &e)))
		return r;
	if (last) {
		/* For who makes or removes it: others want the node. */
		if (!e || w->follow == IMFS_NAME_ITSELF) {
			memcpy(out->name, name, length);
			out->name[length] = 0;
			out->length = (uint16_t)length;
		}
		out->node = e ? e->node : NULL;
	}
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

static const char *skip_slashes(const char *text)
{
	while (*text == '/')
		text++;
	return text;
}

static int step(struct walk *w)
{
	const char *name = w->rest, *end = name, *next;
	bool last;

	while (*end && *end != '/')
		end++;
	next = skip_slashes(end);
	last = !*next;
	/* The slashes stay, for a link that is put in front of them. */
	w->rest = end;
	w->out->slash = last && next != end;
	if (w->node)
		return inside_step(w, name, (size_t)(end - name), last);
	return outside_step(w, name, (size_t)(end - name), last);
}

/* The result of the walk, where the last step did not name it. */
static int finish(struct walk *w)
{
	struct imfs_at *out = w->out;

	if (!w->node) {
		out->outside = true;
		if (!out->path[0])
			strcpy(out->path, "/");
		else if (strlen(out->path) + strlen(w->tail) < sizeof out->path)
			strcat(out->path, w->tail);
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

int imfs_walk(struct imfs *fs, const struct imfs_process *p, struct imfs_node *start, const char *start_path,
    const char *path, enum imfs_follow follow, struct imfs_at *at)
{
	return imfs_walk_within(fs, p, start, start_path, path, follow, 0, at);
}

/* Where it starts. */
static int begin(struct walk *w, const char *path)
{
	bool relative = path[0] != '/' || w->resolve & IMFS_SCOPED;

	if (relative && !w->start && (!w->start_path || strlen(w->start_path) >= IMFS_PATH))
		return -ENOENT;
	return path[0] == '/' ? to_top(w) : to_start(w);
}

int imfs_walk_within(struct imfs *fs, const struct imfs_process *p, struct imfs_node *start, const char *start_path,
    const char *path, enum imfs_follow follow, uint32_t resolve, struct imfs_at *at)
{
	struct walk w;  /* not all of it is set: that would cost more than most walks */
	int r;

	w.fs = fs;
	w.p = p;
	w.node = NULL;
	w.rest = path;
	w.links = 0;
	w.follow = follow;
	w.resolve = resolve;
	w.start = start;
	w.start_path = start_path;
	w.out = at;
	w.tail = "";

	at->outside = at->entered = at->slash = false;
	at->dir = at->node = NULL;
	at->last = IMFS_NORMAL;
	at->length = 0;
	at->path[0] = 0;
	if (!path[0])
		return -ENOENT;
	if ((r = begin(&w, path)))
		return r;
	w.rest = skip_slashes(w.rest);
	while (*w.rest) {
		bool was_outside = !w.node;

		if ((r = step(&w)))
			return r;
		if (resolve & IMFS_NO_XDEV && was_outside == !!w.node)
			return -EXDEV;
		/* Coming in through the prefix: the node was named by no step of ours. */
		if (was_outside && w.node) {
			at->dir = NULL;
			at->node = NULL;
		}
		w.rest = skip_slashes(w.rest);
	}
	return finish(&w);
}
