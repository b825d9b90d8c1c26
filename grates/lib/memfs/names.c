/* Making, moving and removing names. The order of the checks is Linux's, where several would
 * fail. */
#include <stdlib.h>
#include <unistd.h>
#include "watch.h"

#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE 1u
#define RENAME_EXCHANGE  2u
#endif

int imfs_exists(const struct imfs_at *at)
{
	if (!at->node)
		return -ENOENT;
	return at->slash && !S_ISDIR(at->node->mode) ? -ENOTDIR : 0;
}

/* Whether a new name may be made here. `dir`: a trailing slash is fine. */
static int may_make(const struct imfs_process *p, const struct imfs_at *at, bool dir)
{
	if (at->node || at->last != IMFS_NORMAL)
		return -EEXIST;
	if (at->slash && !dir)
		return -ENOENT;
	if (at->dir->dir.removed)
		return -ENOENT;
	return imfs_may(at->dir, &p->cred, W_OK | X_OK);
}

static int may_remove(const struct imfs_process *p, const struct imfs_node *dir, const struct imfs_node *n)
{
	uint32_t uid = p->cred.uid;
	int r = imfs_may(dir, &p->cred, W_OK | X_OK);

	if (r)
		return r;
	return (dir->mode & S_ISVTX) && uid != dir->uid && !imfs_owns(n, &p->cred) ? -EPERM : 0;
}

int imfs_create(
    struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at, uint32_t mode, struct imfs_node **made)
{
	struct imfs_node *n;
	int r = may_make(p, at, S_ISDIR(mode));

	if (!r && imfs_below)
		r = imfs_below->room(fs);
	if (r)
		return r;
	if (!(n = imfs_node_new(fs, mode, &p->cred, at->dir)))
		return -ENOSPC;
	if ((S_ISDIR(mode) && (r = imfs_dir_init(n, at->dir))) ||
	    (r = imfs_dir_add(fs, at->dir, at->name, at->length, n))) {
		imfs_node_settle(fs, n);
		return r;
	}
	n->nlink = S_ISDIR(mode) ? 2 : 1;
	imfs_tell_name(at->dir, IN_CREATE, n, at->name, at->length);
	*made = n;
	return 0;
}

int imfs_mkdir(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at, uint32_t mode)
{
	struct imfs_node *n;

	return imfs_create(fs, p, at, S_IFDIR | (mode & 01777 & ~p->umask), &n);
}

/* Regular files, fifos, and sockets and devices as names only: what opening a device means is
 * for who calls imfs_open. */
int imfs_mknod(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at, uint32_t mode, uint64_t rdev)
{
	struct imfs_node *n;
	uint32_t type = mode & S_IFMT;
	bool device = type == S_IFCHR || type == S_IFBLK;
	int r;

	if (type == S_IFDIR)
		return at->node ? -EEXIST : -EPERM;
	if (type && type != S_IFREG && type != S_IFIFO && type != S_IFSOCK && !device)
		return -EINVAL;
	/* 0, 0 is what a union filesystem takes for a name that was removed: anybody may make one. */
	if (device && !(p->cred.caps & IMFS_MKNOD) && !(type == S_IFCHR && !rdev))
		return (r = may_make(p, at, false)) ? r : -EPERM;
	if (!(r = imfs_create(fs, p, at, (type ? type : S_IFREG) | imfs_new_mode(p, at->dir, mode), &n)) && device)
		n->rdev = rdev;
	return r;
}

int imfs_symlink(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at, const char *target)
{
	struct imfs_node *n;
	char *copy;
	int r;

	if (!*target)
		return -ENOENT;
	if (!(copy = strdup(target)))
		return -ENOSPC;
	if ((r = imfs_create(fs, p, at, S_IFLNK | 0777, &n))) {
		free(copy);
		return r;
	}
	n->target = copy;
	n->size = (int64_t)strlen(target);
	return 0;
}

/* fs.protected_hardlinks, which systems have on: others' files only if they could as well be
 * copied. */
static bool may_link(const struct imfs_process *p, const struct imfs_node *n)
{
	bool runs_as_group = (n->mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP);

	if (imfs_owns(n, &p->cred))
		return true;
	return S_ISREG(n->mode) && !(n->mode & S_ISUID) && !runs_as_group && !imfs_may(n, &p->cred, R_OK | W_OK);
}

int imfs_link(struct imfs *fs, const struct imfs_process *p, struct imfs_node *from, const struct imfs_at *to)
{
	int r =
	    !to->node && to->last == IMFS_NORMAL && !to->slash && !may_link(p, from) ? -EPERM : may_make(p, to, false);

	if (r)
		return r;
	if (S_ISDIR(from->mode))
		return -EPERM;
	/* A file whose last name is gone gets no new one. */
	if (!from->nlink && !from->linkable)
		return -ENOENT;
	if (from->nlink == UINT32_MAX)
		return -EMLINK;
	if ((r = imfs_dir_add(fs, to->dir, to->name, to->length, from)))
		return r;
	from->nlink++;
	from->linkable = false;
	from->ctime = imfs_now();
	imfs_tell_itself(from, IN_ATTRIB);
	imfs_tell_name(to->dir, IN_CREATE, from, to->name, to->length);
	return 0;
}

static void remove_name(struct imfs *fs, const struct imfs_at *at)
{
	struct imfs_node *n = at->node;

	imfs_dir_remove(fs, at->dir, imfs_dir_find(at->dir, at->name, at->length));
	n->ctime = imfs_now();
	if (S_ISDIR(n->mode))
		imfs_dir_orphan(n);
	else {
		n->nlink--;
		imfs_tell_itself(n, IN_ATTRIB);
	}
	imfs_node_hold(n);
	if (n->refs == 1 && !n->nlink)
		imfs_watches_end(n);
	imfs_tell_name(at->dir, IN_DELETE, n, at->name, at->length);
	imfs_node_drop(fs, n);
}

int imfs_unlink(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at)
{
	int r;

	if (at->last != IMFS_NORMAL)
		return -EISDIR;
	if (!at->node)
		return -ENOENT;
	if (at->slash)
		return S_ISDIR(at->node->mode) ? -EISDIR : -ENOTDIR;
	if ((r = may_remove(p, at->dir, at->node)))
		return r;
	if (S_ISDIR(at->node->mode))
		return -EISDIR;
	remove_name(fs, at);
	return 0;
}

/* Whether a directory is empty. A directory that may not be read counts as not empty. */
static int may_go(struct imfs *fs, struct imfs_node *dir)
{
	int r = imfs_dir_list(fs, dir, NULL, 0);

	return r == -EACCES || (!r && dir->dir.count) ? -ENOTEMPTY : r;
}

int imfs_rmdir(struct imfs *fs, const struct imfs_process *p, const struct imfs_at *at)
{
	int r;

	if (at->last != IMFS_NORMAL)
		return at->last == IMFS_DOT ? -EINVAL : at->last == IMFS_DOTDOT ? -ENOTEMPTY : -EBUSY;
	if (!at->node)
		return -ENOENT;
	if ((r = may_remove(p, at->dir, at->node)))
		return r;
	if (!S_ISDIR(at->node->mode))
		return -ENOTDIR;
	if ((r = may_go(fs, at->node)))
		return r;
	if (imfs_holds_pass(fs, at->node))
		return -EBUSY;
	remove_name(fs, at);
	return 0;
}

static int may_rename(const struct imfs *fs, const struct imfs_at *from, const struct imfs_at *to, unsigned flags)
{
	bool dir, exchange = flags & RENAME_EXCHANGE;

	if (from->last != IMFS_NORMAL)
		return -EBUSY;
	if (to->last != IMFS_NORMAL)
		return flags & RENAME_NOREPLACE ? -EEXIST : -EBUSY;
	if (!from->node || to->dir->dir.removed)
		return -ENOENT;
	if ((flags & RENAME_NOREPLACE) && to->node)
		return -EEXIST;
	if (exchange && !to->node)
		return -ENOENT;
	if (exchange && to->slash && !S_ISDIR(to->node->mode))
		return -ENOTDIR;
	dir = S_ISDIR(from->node->mode);
	if (!dir && (from->slash || (!exchange && to->slash)))
		return -ENOTDIR;
	if (dir && imfs_dir_above(from->node, to->dir))
		return -EINVAL;
	if (to->node && S_ISDIR(to->node->mode) && imfs_dir_above(to->node, from->dir))
		return exchange ? -EINVAL : -ENOTEMPTY;
	return imfs_holds_pass(fs, from->node) || (to->node && imfs_holds_pass(fs, to->node)) ? -EBUSY : 0;
}

/* Permissions and kinds, for names that differ. */
static int may_replace(
    struct imfs *fs, const struct imfs_process *p, const struct imfs_at *from, const struct imfs_at *to, bool exchange)
{
	bool dir = S_ISDIR(from->node->mode);
	int r = may_remove(p, from->dir, from->node);

	if (r)
		return r;
	if (!to->node)
		r = imfs_may(to->dir, &p->cred, W_OK | X_OK);
	else if (!(r = may_remove(p, to->dir, to->node)) && !exchange && dir != S_ISDIR(to->node->mode))
		r = dir ? -ENOTDIR : -EISDIR;
	if (!r && from->dir != to->dir && dir)
		r = imfs_may(from->node, &p->cred, W_OK);
	if (!r && from->dir != to->dir && exchange && S_ISDIR(to->node->mode))
		r = imfs_may(to->node, &p->cred, W_OK);
	return !r && !exchange && to->node && dir ? may_go(fs, to->node) : r;
}

/* Lets an entry name another node, with what that means for the link counts and parents of
 * directories. */
static void renames_to(struct imfs_node *dir, struct imfs_entry *e, struct imfs_node *n)
{
	dir->nlink -= S_ISDIR(e->node->mode);
	dir->nlink += S_ISDIR(n->mode);
	imfs_entry_leads(e, n);
	if (S_ISDIR(n->mode))
		n->dir.parent = dir;
	n->ctime = dir->mtime = dir->ctime = imfs_now();
	imfs_changed(dir);
	imfs_changed(n);
}

static void tell_move(
    const struct imfs_at *from, const struct imfs_at *to, struct imfs_node *n, struct imfs_node *replaced)
{
	if (imfs_watches)
		imfs_tell_move_slow(from, to, n, replaced);
}

int imfs_rename(
    struct imfs *fs, const struct imfs_process *p, const struct imfs_at *from, const struct imfs_at *to, unsigned flags)
{
	struct imfs_entry *old, *new;
	struct imfs_node *n = from->node, *replaced = to->node;
	int r;

	if ((flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE)) || flags == (RENAME_NOREPLACE | RENAME_EXCHANGE))
		return -EINVAL;
	if ((r = may_rename(fs, from, to, flags)))
		return r;
	if (n == to->node)
		return 0;
	if ((r = may_replace(fs, p, from, to, flags & RENAME_EXCHANGE)))
		return r;
	old = imfs_dir_find(from->dir, from->name, from->length);
	new = to->node ? imfs_dir_find(to->dir, to->name, to->length) : NULL;
	if (flags & RENAME_EXCHANGE) {
		renames_to(to->dir, new, n);
		renames_to(from->dir, old, replaced);
		tell_move(from, to, n, NULL);
		tell_move(to, from, replaced, NULL);
		return 0;
	}
	/* The new name first: it is what can fail. */
	if (!new && (r = imfs_dir_add(fs, to->dir, to->name, to->length, n)))
		return r;
	if (new) {
		renames_to(to->dir, new, n);
		replaced->ctime = imfs_now();
		imfs_changed(replaced);
		if (S_ISDIR(replaced->mode))
			imfs_dir_orphan(replaced);
		else
			replaced->nlink--;
	}
	imfs_dir_remove(fs, from->dir, old);
	n->ctime = imfs_now();
	tell_move(from, to, n, replaced);
	if (replaced)
		imfs_node_settle(fs, replaced);
	return 0;
}
