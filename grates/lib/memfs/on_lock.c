/* Locks of files: fcntl of ranges and of open files, and flock. A client that waits for a lock
 * sleeps outside the lock of the filesystem. */
#include <sys/file.h>
#include "memfs.h"

/* struct flock of x86-64, which is the guest's too. */
struct client_flock {
	int16_t type, whence;
	uint32_t pad;
	int64_t start, len;
	int32_t pid;
	uint32_t pad2;
};

/* The range that a struct flock means. */
static int range(const struct imfs_file *f, const struct client_flock *from, struct imfs_lock *to)
{
	int64_t base = from->whence == SEEK_CUR ? f->pos : from->whence == SEEK_END ? f->node->size : 0, start;

	if (from->whence < SEEK_SET || from->whence > SEEK_END)
		return -EINVAL;
	if (from->start > 0 && base > INT64_MAX - from->start)
		return -EOVERFLOW;
	start = base + from->start;
	if (start < 0 || (from->len < 0 && start + from->len < 0))
		return -EINVAL;
	if (from->len > 0 && start > INT64_MAX - (from->len - 1))
		return -EOVERFLOW;
	to->start = from->len < 0 ? start + from->len : start;
	to->last = from->len < 0 ? start - 1 : from->len ? start + from->len - 1 : INT64_MAX;
	return 0;
}

/* Sleeps until it is worth trying again. The write lock is held and given back. `f` and its node
 * stay meanwhile. */
static int64_t wait_for_lock(const struct lind_call *c, struct imfs_file *f, const struct imfs_lock *want)
{
	struct imfs_waiter waiter;
	int64_t r = imfs_lock_wait(f->node, want, &waiter);

	if (r)
		return done(r);
	f->refs++;
	imfs_write_unlock();
	do
		r = lind_wait(c->args[0].cage, &waiter.word, 0, NULL);
	while (!r && !__atomic_load_n(&waiter.word, __ATOMIC_ACQUIRE));
	imfs_write_lock();
	imfs_lock_stop(&waiter);
	imfs_file_drop(&fs, f);
	imfs_write_unlock();
	return r == -EAGAIN ? 0 : r;
}

/* Tries until it succeeds, if `wait`. The descriptor is looked up again each time. */
static int64_t lock_file(const struct lind_call *c, struct imfs_lock *want, bool unlock, bool wait, bool own_by_file)
{
	for (;;) {
		struct client *client;
		struct imfs_file *f = fd_take(c, 0, &client);
		int64_t r;

		if (!f)
			return -EBADF;
		want->owner = own_by_file ? (void *)f : (void *)&client->p;
		/* flock(2) changes a lock by letting go of it first. */
		if (want->flock && !unlock && imfs_lock_conflict(f->node, want, NULL))
			imfs_lock(f->node, want, true);
		r = imfs_lock(f->node, want, unlock);
		if (r != -EAGAIN || !wait)
			return done(r);
		if ((r = wait_for_lock(c, f, want)))
			return r;
	}
}

static int64_t get_lock(const struct lind_call *c, struct client_flock *lock, bool ofd)
{
	struct client *client;
	struct imfs_file *f = fd_take(c, 0, &client);
	struct imfs_lock want = { .write = lock->type == F_WRLCK }, found;
	bool conflict;
	int r;

	if (!f)
		return -EBADF;
	if ((r = range(f, lock, &want)))
		return done(r);
	want.owner = ofd ? (void *)f : (void *)&client->p;
	conflict = imfs_lock_conflict(f->node, &want, &found);
	imfs_write_unlock();
	if (conflict) {
		lock->type = found.write ? F_WRLCK : F_RDLCK;
		lock->whence = SEEK_SET;
		lock->start = found.start;
		lock->len = found.last == INT64_MAX ? 0 : found.last - found.start + 1;
		lock->pid = found.pid;
	} else
		lock->type = F_UNLCK;
	return lind_write(c->args[2], lock, sizeof *lock);
}

int64_t record_lock(const struct lind_call *c, uint32_t cmd)
{
	struct client_flock lock;
	bool ofd = cmd >= F_OFD_GETLK, wait = cmd == F_SETLKW || cmd == F_OFD_SETLKW;
	struct imfs_lock want = { .pid = ofd ? -1 : (int32_t)c->args[0].cage };
	struct client *client;
	struct imfs_file *f;
	int r;

	if ((r = lind_read(c->args[2], &lock, sizeof lock)))
		return r;
	if ((lock.type != F_RDLCK && lock.type != F_WRLCK && lock.type != F_UNLCK) || (ofd && lock.pid))
		return -EINVAL;
	if (cmd == F_GETLK || cmd == F_OFD_GETLK)
		return lock.type == F_UNLCK ? -EINVAL : get_lock(c, &lock, ofd);
	if (!(f = fd_take(c, 0, &client)))
		return -EBADF;
	r = range(f, &lock, &want);
	if (!r && lock.type == F_RDLCK && imfs_may_read(f))
		r = -EBADF;
	if (!r && lock.type == F_WRLCK && imfs_may_write(f))
		r = -EBADF;
	imfs_write_unlock();
	want.write = lock.type == F_WRLCK;
	return r ? r : lock_file(c, &want, lock.type == F_UNLCK, wait, ofd);
}

int64_t on_flock(const struct lind_call *c)
{
	uint32_t op = lind_arg32(c, 1), kind = op & ~LOCK_NB;
	struct imfs_lock want = { .flock = true, .pid = -1, .write = kind == LOCK_EX, .last = INT64_MAX };

	if (!fd_ours(c, 0))
		return lind_forward(c);
	if (kind != LOCK_SH && kind != LOCK_EX && kind != LOCK_UN)
		return -EINVAL;
	return lock_file(c, &want, kind == LOCK_UN, !(op & LOCK_NB), true);
}
