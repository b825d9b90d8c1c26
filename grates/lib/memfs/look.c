/* Path arguments: read from the client, walked, and, where they lead elsewhere, passed on. */
#include <stdio.h>
#include <stdlib.h>
#include "memfs.h"

/* The working directory of a client that is outside, in words. Asked of the kernel once per
 * change. */
static int learn_outside_cwd(uint64_t cage, struct client *client)
{
	struct lind_arg none = { 0, cage };
	char path[IMFS_PATH], *copy;
	int64_t r = lind_call(
	    SYS_getcwd, cage, lind_mine(path), (struct lind_arg){ sizeof path, cage }, none, none, none, none);

	if (r < 0)
		return (int)r;
	if (!(copy = strdup(path)))
		return -ENOMEM;
	imfs_write_lock();
	if (client->cage == cage) {
		free(client->p.cwd_path);
		client->p.cwd_path = copy;
	} else
		free(copy);
	imfs_write_unlock();
	return 0;
}

/* The cage whose directory a relative path starts from: rights are always the target's. */
static uint64_t starts_from(const struct lind_call *c, int dir)
{
	return dir < 0 ? c->target : c->args[dir].cage;
}

/* Whether a path that starts in /proc may lead to files of ours: by a number, of a process or
 * descriptor, or by the process's own name. */
static bool names_a_process(const char *text)
{
	return (*text >= '0' && *text <= '9') || !strncmp(text, "self/", 5) || !strncmp(text, "thread-self/", 12) ||
	    !strncmp(text, "cwd", 3);
}

/* Whether a path from a directory outside may come in through the prefix: then it has the name
 * by which that is entered. */
static bool names_the_prefix(const char *text)
{
	const char *name = strrchr(fs.prefix, '/');
	size_t length = name ? strlen(++name) : 0;

	for (const char *at = length ? strstr(text, name) : NULL; at; at = strstr(at + 1, name))
		if ((at == text || at[-1] == '/') && (!at[length] || at[length] == '/'))
			return true;
	return false;
}

/* Whether it may come back from a path that passes. */
static bool goes_up(const char *text)
{
	return fs.pass_count && strstr(text, "..");
}

/* Relative to a directory that is not ours: it may be one of /proc, one above the prefix, or one
 * that passes. */
static void learn_start(const struct lind_call *c, int dir, struct look *l)
{
	struct lind_arg none = { 0, c->args[dir].cage };
	char link[32];
	bool ours;
	int64_t r;

	imfs_read_lock();
	ours = fd_of(l->from, c->args[dir]);
	imfs_read_unlock();
	if (ours || c->args[dir].cage != c->target)
		return;
	snprintf(link, sizeof link, "/proc/self/fd/%u", lind_arg32(c, dir));
	r = lind_call(SYS_readlink, c->target, lind_mine(link), lind_mine(l->start),
	    (struct lind_arg){ sizeof l->start - 1, c->target }, none, none, none);
	l->start[r > 0 ? r : 0] = 0;
	if (l->start[0] != '/' ||
	    (!names_the_prefix(l->text) && !goes_up(l->text) && strncmp(l->start, "/proc/", 6) &&
		strcmp(l->start, "/proc")))
		l->start[0] = 0;
}

/* Also an absolute one may be, of openat2. */
static bool is_relative(const struct look *l)
{
	return l->text[0] != '/' || l->resolve & IMFS_SCOPED;
}

/* The part that does not need the lock: finds where a relative path starts. The text is there. */
static int find_start(const struct lind_call *c, int dir, bool may_be_empty, struct look *l)
{
	bool at_cwd = dir < 0 || (int)lind_arg32(c, dir) == AT_FDCWD;

	l->client = client_of(c->target);
	l->from = dir < 0 ? l->client : client_of(c->args[dir].cage);
	l->at.entered = l->at.too_long = false;
	l->at.path[0] = l->start[0] = 0;
	if (!at_cwd &&
	    (names_a_process(l->text) || (l->text[0] != '/' && (names_the_prefix(l->text) || goes_up(l->text)))))
		learn_start(c, dir, l);
	if (!l->text[0] && !may_be_empty)
		return -ENOENT;
	if (is_relative(l) && at_cwd && !l->from->p.cwd && !l->from->p.cwd_path)
		return learn_outside_cwd(starts_from(c, dir), l->from);
	return 0;
}

static int prepare(const struct lind_call *c, int dir, int path, bool may_be_empty, struct look *l)
{
	ssize_t length = lind_read_string(c->args[path], l->text, sizeof l->text);

	return length < 0 ? (int)length : find_start(c, dir, may_be_empty, l);
}

/* The empty path: the directory argument itself. */
static int itself(struct look *l, struct imfs_node *n)
{
	l->at = (struct imfs_at){ .outside = !n, .node = n, .dir = n, .last = IMFS_ROOT };
	return n ? 0 : OUTSIDE;
}

static int walk(const struct lind_call *c, int dir, enum imfs_follow follow, struct look *l)
{
	struct imfs_node *start = l->from->p.cwd;
	const char *start_path = l->from->p.cwd_path;
	int r;

	if (l->client->cage != c->target)
		return -ESRCH;
	if (is_relative(l) && l->from->cage != starts_from(c, dir))
		return -ENOENT;
	if (!is_relative(l))
		start = NULL;
	else if (dir >= 0 && (int)lind_arg32(c, dir) != AT_FDCWD) {
		struct imfs_file *f = fd_of(l->from, c->args[dir]);

		if (!f && !l->start[0])
			return OUTSIDE;
		if (!f)
			start_path = l->start;
		else if (l->text[0] && !S_ISDIR(f->node->mode))
			return -ENOTDIR;
		start = f ? f->node : NULL;
	}
	if (!l->text[0])
		return itself(l, start);
	if (l->resolve & LOOK_AS_REAL) {
		struct imfs_process real = l->client->p;

		imfs_as_real(&real.cred);
		l->resolve &= ~LOOK_AS_REAL;
		r = imfs_walk_within(&fs, &real, start, start_path, l->text, follow, l->resolve, &l->at);
	} else
		r = imfs_walk_within(&fs, &l->client->p, start, start_path, l->text, follow, l->resolve, &l->at);
	if (r)
		return r;
	return l->at.outside ? OUTSIDE : 0;
}

int look_within(const struct lind_call *c, int dir, int path, enum imfs_follow follow, bool may_be_empty,
    uint32_t resolve, struct look *l)
{
	int r;

	l->resolve = resolve;
	if ((r = prepare(c, dir, path, may_be_empty, l)))
		return r;
	imfs_write_lock();
	if ((r = walk(c, dir, follow, l)))
		imfs_write_unlock();
	return r;
}

int look(const struct lind_call *c, int dir, int path, enum imfs_follow follow, bool may_be_empty, struct look *l)
{
	return look_within(c, dir, path, follow, may_be_empty, 0, l);
}

int look_text(const struct lind_call *c, const char *text, enum imfs_follow follow, struct look *l)
{
	int r;

	l->resolve = 0;
	strcpy(l->text, text);
	if ((r = find_start(c, -1, false, l)))
		return r;
	imfs_write_lock();
	if ((r = walk(c, -1, follow, l)))
		imfs_write_unlock();
	return r;
}

int64_t look_elsewhere(const struct lind_call *c, int path, int looked, const struct look *l)
{
	struct lind_call changed = *c;

	if (looked != OUTSIDE)
		return looked;
	if (l->at.entered)
		changed.args[path] = lind_mine(l->at.path);
	return lind_forward(&changed);
}

/* One of two paths is ours and the other not: two filesystems, unless its directory does not
 * exist at all. */
static int apart(const struct lind_call *c, int dir, const struct look *l)
{
	int64_t r = 0;

	if (dir >= 0 && l->text[0] != '/' && (int)lind_arg32(c, dir) != AT_FDCWD)
		r = lind_call_plain(SYS_fcntl, c->args[dir].cage, lind_arg32(c, dir), F_GETFD, 0, 0);
	return r < 0 ? (int)r : -EXDEV;
}

/* The last names of both paths are looked at after all directories, the first path's first.
 * `moves`: it is the name itself that is meant. */
static int first_wrong(const struct look *l1, const struct look *l2, bool moves, int r2)
{
	if (!l2->at.too_long)
		return r2;
	return moves && l1->at.last != IMFS_NORMAL ? -EBUSY : !l1->at.node ? -ENOENT : r2;
}

int look_two(const struct lind_call *c, int dir1, int path1, enum imfs_follow follow1, bool may_be_empty, int dir2,
    int path2, struct look *l1, struct look *l2)
{
	int r, r1 = 0, r2 = 0;

	l1->resolve = l2->resolve = 0;
	if ((r = prepare(c, dir1, path1, may_be_empty, l1)) || (r = prepare(c, dir2, path2, false, l2)))
		return r;
	imfs_write_lock();
	if ((r1 = walk(c, dir1, follow1, l1)) < 0 || (r2 = walk(c, dir2, IMFS_NAME_ITSELF, l2)) < 0)
		r = r1 < 0 ? r1 : r1 ? r2 : first_wrong(l1, l2, follow1 == IMFS_NAME_ITSELF, r2);
	else
		r = r1 == r2 ? r1 : -EXDEV;
	if (r)
		imfs_write_unlock();
	if (r == -EXDEV && r1 != r2)
		r = r1 ? apart(c, dir1, l1) : apart(c, dir2, l2);
	return r;
}

int64_t look_two_elsewhere(
    const struct lind_call *c, int path1, int path2, int looked, const struct look *l1, const struct look *l2)
{
	struct lind_call changed = *c;

	if (looked != OUTSIDE)
		return looked;
	if (l1->at.entered)
		changed.args[path1] = lind_mine(l1->at.path);
	if (l2->at.entered)
		changed.args[path2] = lind_mine(l2->at.path);
	return lind_forward(&changed);
}

/* mkdir -p, for a path below the prefix; anything else is left alone. The write lock is held. */
int make_directories(const struct imfs_process *p, const char *path)
{
	struct imfs_process owner = { .umask = 022, .cred = { .uid = p->cred.uid, .gid = p->cred.gid } },
			    root = { .umask = 022, .cred = { .caps = IMFS_ALL_CAPS } };
	char part[IMFS_PATH];
	struct imfs_at at;
	int r;

	for (size_t i = 1, length = strlen(path); i <= length && i < sizeof part; i++) {
		if (path[i] && path[i] != '/')
			continue;
		memcpy(part, path, i);
		part[i] = 0;
		if ((r = imfs_walk(&fs, &root, NULL, NULL, part, IMFS_FOLLOW, &at)))
			return r;
		if (at.outside || at.node || !at.dir)
			continue;
		if ((r = imfs_mkdir(&fs, &root, &at, 0755)))
			return r;
		/* A file that is made for a client belongs to it. */
		imfs_dir_find(at.dir, at.name, at.length)->node->uid = owner.cred.uid;
		imfs_dir_find(at.dir, at.name, at.length)->node->gid = owner.cred.gid;
	}
	return 0;
}
