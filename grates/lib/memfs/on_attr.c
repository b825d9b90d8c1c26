/* Attributes, in the layouts of x86-64 Linux. */
#include <linux/magic.h>
#include "memfs.h"

#define DEVICE 0x1du  /* what st_dev says; the minor number of a filesystem without a device */

struct client_time {
	int64_t sec, nsec;
};

struct client_stat {
	uint64_t dev, ino, nlink;
	uint32_t mode, uid, gid, pad;
	uint64_t rdev;
	int64_t size, blksize, blocks;
	struct client_time atime, mtime, ctime;
	int64_t unused[3];
};
_Static_assert(sizeof(struct client_stat) == 144, "struct stat");

struct client_statx_time {
	int64_t sec;
	uint32_t nsec;
	int32_t pad;
};

struct client_statx {
	uint32_t mask, blksize;
	uint64_t attributes;
	uint32_t nlink, uid, gid;
	uint16_t mode, pad;
	uint64_t ino, size, blocks, attributes_mask;
	struct client_statx_time atime, btime, ctime, mtime;
	uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
	uint64_t spare[14];
};
_Static_assert(sizeof(struct client_statx) == 256, "struct statx");

struct client_statfs {
	int64_t type, bsize;
	uint64_t blocks, bfree, bavail, files, ffree;
	int32_t fsid[2];
	int64_t namelen, frsize, flags, spare[4];
};
_Static_assert(sizeof(struct client_statfs) == 120, "struct statfs");

/* AT_NO_AUTOMOUNT and the AT_STATX_ ones ask for what is so anyway. */
#define STAT_FLAGS     (AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH | AT_NO_AUTOMOUNT)
#define STATX_FLAGS    (STAT_FLAGS | AT_STATX_SYNC_TYPE)
#define STATX_RESERVED 0x80000000u

static struct client_time time_of(struct timespec t)
{
	return (struct client_time){ t.tv_sec, t.tv_nsec };
}

/* The lock is held; it is given back before the client's memory is touched. */
static int64_t answer_stat(const struct lind_call *c, const struct imfs_node *n, struct lind_arg to)
{
	static _Thread_local struct client_stat st;
	struct imfs_stat s;

	imfs_stat(n, &s);
	imfs_write_unlock();
	st = (struct client_stat){
		.dev = DEVICE,
		.ino = s.ino,
		.nlink = s.nlink,
		.mode = s.mode,
		.uid = s.uid,
		.gid = s.gid,
		.rdev = s.rdev,
		.size = (int64_t)s.size,
		.blksize = 4096,
		.blocks = (int64_t)s.blocks,
		.atime = time_of(s.atime),
		.mtime = time_of(s.mtime),
		.ctime = time_of(s.ctime),
	};
	return lind_answer(c, 0, to, &st, sizeof st);
}

/* A path outside: what the kernel says, but for links to descriptors of ours. */
static int64_t stat_elsewhere(
    const struct lind_call *c, int path, int looked, const struct look *l, enum imfs_follow follow)
{
	uint32_t mode = looked == OUTSIDE && follow == IMFS_NOFOLLOW ? proc_link_mode(c, l->client, l->at.path) : 0;
	int64_t r = look_elsewhere(c, path, looked, l);

	if (r || !mode)
		return r;
	return lind_write(lind_at(c->args[path + 1], offsetof(struct client_stat, mode)), &mode, sizeof mode);
}

static int64_t stat_at(const struct lind_call *c, int dir, int path, uint32_t flags)
{
	enum imfs_follow follow = flags & AT_SYMLINK_NOFOLLOW ? IMFS_NOFOLLOW : IMFS_FOLLOW;
	struct look l;
	int r;

	if (flags & ~STAT_FLAGS)
		return -EINVAL;
	if ((r = look(c, dir, path, follow, flags & AT_EMPTY_PATH, &l)))
		return stat_elsewhere(c, path, r, &l, follow);
	r = imfs_exists(&l.at);
	return r ? done(r) : answer_stat(c, l.at.node, c->args[path + 1]);
}

int64_t on_stat(const struct lind_call *c)
{
	return stat_at(c, -1, 0, 0);
}

int64_t on_lstat(const struct lind_call *c)
{
	return stat_at(c, -1, 0, AT_SYMLINK_NOFOLLOW);
}

int64_t on_newfstatat(const struct lind_call *c)
{
	return stat_at(c, 0, 1, lind_arg32(c, 3));
}

int64_t on_fstat(const struct lind_call *c)
{
	struct client *client;
	struct imfs_file *f = fd_take(c, 0, &client);

	return f ? answer_stat(c, f->node, c->args[1]) : lind_forward(c);
}

static struct client_statx_time statx_time_of(struct timespec t)
{
	return (struct client_statx_time){ .sec = t.tv_sec, .nsec = (uint32_t)t.tv_nsec };
}

int64_t on_statx(const struct lind_call *c)
{
	uint32_t flags = lind_arg32(c, 2);
	enum imfs_follow follow = flags & AT_SYMLINK_NOFOLLOW ? IMFS_NOFOLLOW : IMFS_FOLLOW;
	static _Thread_local struct client_statx st;
	struct imfs_stat s;
	struct look l;
	int r;

	if ((flags & ~STATX_FLAGS) || (flags & AT_STATX_SYNC_TYPE) == AT_STATX_SYNC_TYPE ||
	    (lind_arg32(c, 3) & STATX_RESERVED))
		return -EINVAL;
	if ((r = look(c, 0, 1, follow, flags & AT_EMPTY_PATH, &l)))
		return look_elsewhere(c, 1, r, &l);
	if ((r = imfs_exists(&l.at)))
		return done(r);
	imfs_stat(l.at.node, &s);
	imfs_write_unlock();
	st = (struct client_statx){
		.mask = STATX_ALL,
		.blksize = 4096,
		.nlink = s.nlink,
		.uid = s.uid,
		.gid = s.gid,
		.mode = (uint16_t)s.mode,
		.ino = s.ino,
		.size = s.size,
		.blocks = s.blocks,
		.dev_minor = DEVICE,
		.atime = statx_time_of(s.atime),
		.btime = statx_time_of(s.btime),
		.ctime = statx_time_of(s.ctime),
		.mtime = statx_time_of(s.mtime),
	};
	return lind_answer(c, 0, c->args[4], &st, sizeof st);
}

static int64_t access_at(const struct lind_call *c, int dir, int path, uint32_t flags)
{
	enum imfs_follow follow = flags & AT_SYMLINK_NOFOLLOW ? IMFS_NOFOLLOW : IMFS_FOLLOW;
	struct look l;
	int r;

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EACCESS | AT_EMPTY_PATH))
		return -EINVAL;
	if ((r = look_within(c, dir, path, follow, flags & AT_EMPTY_PATH, flags & AT_EACCESS ? 0 : LOOK_AS_REAL, &l)))
		return look_elsewhere(c, path, r, &l);
	r = imfs_exists(&l.at);
	return done(r ? r : imfs_access(l.at.node, &l.client->p, (int)lind_arg32(c, path + 1), flags & AT_EACCESS));
}

int64_t on_access(const struct lind_call *c)
{
	return access_at(c, -1, 0, 0);
}

int64_t on_faccessat(const struct lind_call *c)
{
	return access_at(c, 0, 1, 0);
}

int64_t on_faccessat2(const struct lind_call *c)
{
	return access_at(c, 0, 1, lind_arg32(c, 3));
}

static int64_t chmod_at(const struct lind_call *c, int dir, int path, uint32_t flags)
{
	enum imfs_follow follow = flags & AT_SYMLINK_NOFOLLOW ? IMFS_NOFOLLOW : IMFS_FOLLOW;
	struct look l;
	int r;

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if ((r = look(c, dir, path, follow, flags & AT_EMPTY_PATH, &l)))
		return look_elsewhere(c, path, r, &l);
	r = imfs_exists(&l.at);
	return done(r ? r : imfs_chmod(l.at.node, &l.client->p.cred, lind_arg32(c, path + 1)));
}

int64_t on_chmod(const struct lind_call *c)
{
	return chmod_at(c, -1, 0, 0);
}

int64_t on_fchmodat(const struct lind_call *c)
{
	return chmod_at(c, 0, 1, 0);
}

int64_t on_fchmodat2(const struct lind_call *c)
{
	return chmod_at(c, 0, 1, lind_arg32(c, 3));
}

int64_t on_fchmod(const struct lind_call *c)
{
	struct client *client;
	struct imfs_file *f = fd_take(c, 0, &client);

	if (!f)
		return lind_forward(c);
	return done(f->flags & O_PATH ? -EBADF : imfs_chmod(f->node, &acting(c, client)->p.cred, lind_arg32(c, 1)));
}

static int64_t chown_at(const struct lind_call *c, int dir, int path, uint32_t flags)
{
	enum imfs_follow follow = flags & AT_SYMLINK_NOFOLLOW ? IMFS_NOFOLLOW : IMFS_FOLLOW;
	struct look l;
	int r;

	if (flags & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if ((r = look(c, dir, path, follow, flags & AT_EMPTY_PATH, &l)))
		return look_elsewhere(c, path, r, &l);
	r = imfs_exists(&l.at);
	return done(r ? r : imfs_chown(l.at.node, &l.client->p.cred, lind_arg32(c, path + 1), lind_arg32(c, path + 2)));
}

int64_t on_chown(const struct lind_call *c)
{
	return chown_at(c, -1, 0, 0);
}

int64_t on_lchown(const struct lind_call *c)
{
	return chown_at(c, -1, 0, AT_SYMLINK_NOFOLLOW);
}

int64_t on_fchownat(const struct lind_call *c)
{
	return chown_at(c, 0, 1, lind_arg32(c, 4));
}

int64_t on_fchown(const struct lind_call *c)
{
	struct client *client;
	struct imfs_file *f = fd_take(c, 0, &client);

	if (!f)
		return lind_forward(c);
	return done(f->flags & O_PATH
		? -EBADF
		: imfs_chown(f->node, &acting(c, client)->p.cred, lind_arg32(c, 1), lind_arg32(c, 2)));
}

int64_t on_truncate(const struct lind_call *c)
{
	struct look l;
	int r = look(c, -1, 0, IMFS_FOLLOW, false, &l);

	if (r)
		return look_elsewhere(c, 0, r, &l);
	r = imfs_exists(&l.at);
	if (!r && S_ISREG(l.at.node->mode))
		r = imfs_may(l.at.node, &l.client->p.cred, 2);
	if (!r && l.at.node->runners)
		r = -ETXTBSY;
	return sized(c, l.client, done(r ? r : imfs_truncate(&fs, l.at.node, &l.client->p, (int64_t)c->args[1].value)));
}

/* Sets times that were read as `times`, NULL meaning now. */
static int64_t set_times(
    const struct lind_call *c, int dir, int path, bool may_be_empty, uint32_t flags, const struct timespec *times)
{
	enum imfs_follow follow = flags & AT_SYMLINK_NOFOLLOW ? IMFS_NOFOLLOW : IMFS_FOLLOW;
	struct look l;
	int r = look(c, dir, path, follow, may_be_empty, &l);

	if (r)
		return look_elsewhere(c, path, r, &l);
	r = imfs_exists(&l.at);
	return done(r ? r : imfs_utimens(l.at.node, &l.client->p.cred, times));
}

/* With a NULL path it is futimens(3). */
int64_t on_utimensat(const struct lind_call *c)
{
	struct client_time t[2];
	struct timespec times[2];
	struct client *client;
	struct imfs_file *f;
	int r;

	if (lind_arg32(c, 3) & ~(AT_SYMLINK_NOFOLLOW | AT_EMPTY_PATH))
		return -EINVAL;
	if (c->args[2].value) {
		if ((r = lind_read(c->args[2], t, sizeof t)))
			return r;
		/* The upper half is padding that the guest need not clear. */
		for (int i = 0; i < 2; i++)
			times[i] = (struct timespec){ .tv_sec = t[i].sec, .tv_nsec = (int32_t)t[i].nsec };
	}
	/* Nothing is changed, so nothing is looked up. */
	if (c->args[2].value && (int32_t)t[0].nsec == UTIME_OMIT && (int32_t)t[1].nsec == UTIME_OMIT)
		return 0;
	if (c->args[1].value)
		return set_times(
		    c, 0, 1, lind_arg32(c, 3) & AT_EMPTY_PATH, lind_arg32(c, 3), c->args[2].value ? times : NULL);
	if (!(f = fd_take(c, 0, &client)))
		return lind_forward(c);
	return done(imfs_utimens(f->node, &acting(c, client)->p.cred, c->args[2].value ? times : NULL));
}

static int64_t set_timevals(const struct lind_call *c, int dir, int path)
{
	struct client_time t[2];
	struct timespec times[2];
	int r;

	if (!c->args[path + 1].value)
		return set_times(c, dir, path, false, 0, NULL);
	if ((r = lind_read(c->args[path + 1], t, sizeof t)))
		return r;
	for (int i = 0; i < 2; i++) {
		if (t[i].nsec < 0 || t[i].nsec >= 1000000)
			return -EINVAL;
		times[i] = (struct timespec){ .tv_sec = t[i].sec, .tv_nsec = (long)t[i].nsec * 1000 };
	}
	return set_times(c, dir, path, false, 0, times);
}

int64_t on_utimes(const struct lind_call *c)
{
	return set_timevals(c, -1, 0);
}

int64_t on_futimesat(const struct lind_call *c)
{
	return set_timevals(c, 0, 1);
}

int64_t on_utime(const struct lind_call *c)
{
	int64_t t[2];
	struct timespec times[2];
	int r;

	if (!c->args[1].value)
		return set_times(c, -1, 0, false, 0, NULL);
	if ((r = lind_read(c->args[1], t, sizeof t)))
		return r;
	for (int i = 0; i < 2; i++)
		times[i] = (struct timespec){ .tv_sec = t[i] };
	return set_times(c, -1, 0, false, 0, times);
}

/* The lock is held, and given back. */
static int64_t answer_statfs(struct lind_arg to)
{
	uint64_t blocks = fs.limit / 4096, left = (fs.limit - fs.used) / 4096;
	struct client_statfs st = {
		.type = TMPFS_MAGIC, .bsize = 4096, .frsize = 4096, .namelen = IMFS_NAME, .fsid = { DEVICE, 0 }
	};

	if (imfs_below)
		imfs_below->space(&blocks, &left);
	st.blocks = blocks;
	st.bfree = st.bavail = st.ffree = left;
	st.files = fs.nodes + left;

	imfs_write_unlock();
	return lind_write(to, &st, sizeof st);
}

int64_t on_statfs(const struct lind_call *c)
{
	struct look l;
	int r = look(c, -1, 0, IMFS_FOLLOW, false, &l);

	if (r)
		return look_elsewhere(c, 0, r, &l);
	r = imfs_exists(&l.at);
	return r ? done(r) : answer_statfs(c->args[1]);
}

int64_t on_fstatfs(const struct lind_call *c)
{
	struct client *client;

	return fd_take(c, 0, &client) ? answer_statfs(c->args[1]) : lind_forward(c);
}
