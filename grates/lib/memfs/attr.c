/* Attributes: what stat(2) shows, and changing it. */
#include <unistd.h>
#include "watch.h"

#ifndef UTIME_NOW
#define UTIME_NOW  0x3fffffff
#define UTIME_OMIT 0x3ffffffe
#endif

void imfs_stat(const struct imfs_node *n, struct imfs_stat *st)
{
	*st = (struct imfs_stat){
		.ino = n->ino,
		.size = (uint64_t)n->size,
		.blocks = n->under ? imfs_below->blocks(n) : n->data.allocated / 512,
		.rdev = n->rdev,
		.mode = n->mode,
		.nlink = n->nlink,
		.uid = n->uid,
		.gid = n->gid,
		.atime = n->atime,
		.mtime = n->mtime,
		.ctime = n->ctime,
		.btime = n->btime,
	};
}

int imfs_chmod(struct imfs_node *n, const struct imfs_cred *cred, uint32_t mode)
{
	if (S_ISLNK(n->mode))
		return -EOPNOTSUPP;
	if (!imfs_owns(n, cred))
		return -EPERM;
	if (!(cred->caps & IMFS_FSETID) && !imfs_in_group(cred, n->gid))
		mode &= ~(uint32_t)S_ISGID;
	n->mode = (n->mode & S_IFMT) | (mode & 07777);
	n->ctime = imfs_now();
	imfs_changed(n);
	imfs_tell(n, IN_ATTRIB);
	return 0;
}

/* Without the set-id bits that a change by somebody else must not leave: chown(2), write(2). */
static uint32_t without_suid(const struct imfs_node *n, const struct imfs_cred *cred, uint32_t gid)
{
	uint32_t mode = n->mode & ~(uint32_t)S_ISUID;

	if ((mode & S_IXGRP) || (!(cred->caps & IMFS_FSETID) && !imfs_in_group(cred, gid)))
		mode &= ~(uint32_t)S_ISGID;
	return mode;
}

int imfs_chown(struct imfs_node *n, const struct imfs_cred *cred, uint32_t uid, uint32_t gid)
{
	uint32_t mode = S_ISDIR(n->mode) ? n->mode : without_suid(n, cred, n->gid);

	if (!(cred->caps & IMFS_CHOWN)) {
		bool owner = cred->uid == n->uid;

		if (!owner && (uid != UINT32_MAX || gid != UINT32_MAX || mode != n->mode))
			return -EPERM;
		if (uid != UINT32_MAX && uid != n->uid)
			return -EPERM;
		if (gid != UINT32_MAX && gid != n->gid && !imfs_in_group(cred, gid))
			return -EPERM;
	}
	if (uid != UINT32_MAX)
		n->uid = uid;
	if (gid != UINT32_MAX)
		n->gid = gid;
	n->mode = mode;
	n->ctime = imfs_now();
	imfs_changed(n);
	imfs_tell(n, IN_ATTRIB);
	return 0;
}

static bool valid(const struct timespec *t)
{
	return t->tv_nsec == UTIME_NOW || t->tv_nsec == UTIME_OMIT || (t->tv_nsec >= 0 && t->tv_nsec < 1000000000);
}

static void set_time(struct timespec *to, const struct timespec *from, const struct timespec *now)
{
	if (from->tv_nsec == UTIME_NOW)
		*to = *now;
	else if (from->tv_nsec != UTIME_OMIT)
		*to = *from;
}

/* `times` NULL: both now. */
int imfs_utimens(struct imfs_node *n, const struct imfs_cred *cred, const struct timespec times[2])
{
	static const struct timespec both_now[2] = { { .tv_nsec = UTIME_NOW }, { .tv_nsec = UTIME_NOW } };
	struct timespec now = imfs_now();

	if (!times)
		times = both_now;
	if (!valid(&times[0]) || !valid(&times[1]))
		return -EINVAL;
	if (times[0].tv_nsec == UTIME_OMIT && times[1].tv_nsec == UTIME_OMIT)
		return 0;
	if (!imfs_owns(n, cred)) {
		if (times[0].tv_nsec != UTIME_NOW || times[1].tv_nsec != UTIME_NOW)
			return -EPERM;
		if (imfs_may(n, cred, W_OK))
			return -EACCES;
	}
	set_time(&n->atime, &times[0], &now);
	set_time(&n->mtime, &times[1], &now);
	n->ctime = now;
	imfs_changed(n);
	/* Linux takes a time that is set alone for the read or the write that would move it. */
	imfs_tell(n,
	    times[0].tv_nsec == UTIME_OMIT       ? IN_MODIFY
		: times[1].tv_nsec == UTIME_OMIT ? IN_ACCESS
						 : IN_ATTRIB);
	return 0;
}

void imfs_as_real(struct imfs_cred *cred)
{
	cred->uid = cred->ruid;
	cred->gid = cred->rgid;
	cred->caps = cred->rcaps;
}

int imfs_access(const struct imfs_node *n, const struct imfs_process *p, int mask, bool effective)
{
	struct imfs_cred cred = p->cred;

	if (mask & ~(R_OK | W_OK | X_OK))
		return -EINVAL;
	if (!effective)
		imfs_as_real(&cred);
	return imfs_may(n, &cred, mask);
}

void imfs_kill_suid(struct imfs_node *n, const struct imfs_cred *cred)
{
	if ((n->mode & (S_ISUID | S_ISGID)) && !(cred->caps & IMFS_FSETID))
		n->mode = without_suid(n, cred, n->gid);
}

/* The caller has checked the permission, by path or by descriptor. */
int imfs_truncate(struct imfs *fs, struct imfs_node *n, const struct imfs_process *p, int64_t size)
{
	int r;

	if (size < 0)
		return -EINVAL;
	if (S_ISDIR(n->mode))
		return -EISDIR;
	if (!S_ISREG(n->mode))
		return -EINVAL;
	if (size > n->size && size > imfs_largest(p))
		return -EFBIG;
	if ((r = imfs_data_resize(fs, n, size)))
		return r;
	imfs_kill_suid(n, &p->cred);
	n->mtime = n->ctime = imfs_now();
	imfs_changed(n);
	imfs_tell(n, IN_MODIFY);
	return 0;
}
