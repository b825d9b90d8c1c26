/* Nodes: their birth, their end, who may do what with them. */
#include <stdlib.h>
#include <unistd.h>
#include "watch.h"

/* The part of the size limit that a node takes. */
#define NODE_COST sizeof(struct imfs_node)

const struct imfs_below *imfs_below;

struct timespec imfs_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME_COARSE, &now);
	return now;
}

int imfs_charge(struct imfs *fs, uint64_t bytes)
{
	if (bytes > fs->limit || fs->used > fs->limit - bytes)
		return -ENOSPC;
	fs->used += bytes;
	return 0;
}

bool imfs_in_group(const struct imfs_cred *cred, uint32_t gid)
{
	if (cred->gid == gid)
		return true;
	for (uint32_t i = 0; i < cred->group_count; i++)
		if (cred->groups[i] == gid)
			return true;
	return false;
}

int imfs_may(const struct imfs_node *n, const struct imfs_cred *cred, int mask)
{
	uint32_t bits = n->mode;

	if (cred->uid == n->uid)
		bits >>= 6;
	else if (imfs_in_group(cred, n->gid))
		bits >>= 3;
	if (!((uint32_t)mask & ~bits & 7))
		return 0;
	if ((cred->caps & IMFS_DAC_OVERRIDE) && (!(mask & X_OK) || S_ISDIR(n->mode) || (n->mode & 0111)))
		return 0;
	if ((cred->caps & IMFS_DAC_READ_SEARCH) && (mask == R_OK || (S_ISDIR(n->mode) && !(mask & W_OK))))
		return 0;
	return -EACCES;
}

/* In a directory that hands its group down, only members make programs that run as that group;
 * that is looked at before the umask takes its bits. */
uint32_t imfs_new_mode(const struct imfs_process *p, const struct imfs_node *dir, uint32_t mode)
{
	if ((dir->mode & S_ISGID) && (mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
	    !(p->cred.caps & IMFS_FSETID) && !imfs_in_group(&p->cred, dir->gid))
		mode &= ~(uint32_t)S_ISGID;
	return mode & 07777 & ~p->umask;
}

struct imfs_node *imfs_node_new(
    struct imfs *fs, uint32_t mode, const struct imfs_cred *cred, const struct imfs_node *parent)
{
	struct imfs_node *n;

	if (imfs_charge(fs, NODE_COST))
		return NULL;
	if (!(n = calloc(1, sizeof *n))) {
		fs->used -= NODE_COST;
		return NULL;
	}
	n->mode = mode;
	n->uid = cred->uid;
	n->gid = cred->gid;
	if (parent && (parent->mode & S_ISGID)) {
		n->gid = parent->gid;
		if (S_ISDIR(mode))
			n->mode |= S_ISGID;
	}
	n->ino = fs->next_ino;
	n->atime = n->mtime = n->ctime = n->btime = imfs_now();
	if (imfs_below && imfs_below->born(n)) {
		free(n);
		fs->used -= NODE_COST;
		return NULL;
	}
	fs->next_ino++;
	fs->nodes++;
	return n;
}

void imfs_node_hold(struct imfs_node *n)
{
	n->refs++;
}

void imfs_node_drop(struct imfs *fs, struct imfs_node *n)
{
	n->refs--;
	imfs_node_settle(fs, n);
}

void imfs_node_settle(struct imfs *fs, struct imfs_node *n)
{
	if (n->refs || n->nlink)
		return;
	if (n->watches)
		imfs_watches_end(n);
	if (n->watcher)
		imfs_watcher_end(n->watcher);
	imfs_data_free(fs, n);
	imfs_dir_free(fs, n);
	imfs_xattr_free(fs, n);
	if (n->under)
		imfs_below->gone(n);
	free(n->target);
	while (n->locks) {
		struct imfs_lock *next = n->locks->next;

		free(n->locks);
		n->locks = next;
	}
	fs->used -= NODE_COST;
	fs->nodes--;
	free(n);
}

int imfs_init(struct imfs *fs, const char *prefix, uint64_t limit, const struct imfs_cred *owner)
{
	size_t length = strlen(prefix);

	while (length && prefix[length - 1] == '/')
		length--;
	if (length >= sizeof fs->prefix || (length && prefix[0] != '/'))
		return -EINVAL;
	memset(fs, 0, sizeof *fs);
	memcpy(fs->prefix, prefix, length);
	fs->limit = limit;
	fs->next_ino = 1;
	if (!(fs->root = imfs_node_new(fs, S_IFDIR | 0755, owner, NULL)) || imfs_dir_init(fs->root, fs->root))
		return -ENOMEM;
	fs->root->nlink = 2;
	return 0;
}
