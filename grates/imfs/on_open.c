/* Opening: the file is ours, its descriptor's number the kernel's. */
#include <lind/openat2.h>
#include <sys/mman.h>
#include "grate.h"

#define NO_ACCESS 3		/* neither reading nor writing: open(2) */
#define CREAT_FLAGS (O_CREAT | O_WRONLY | O_TRUNC)

/*
 * What stands behind our files' numbers in the tables of clients: one file, of which each client gets duplicates, so that numbers
 * never collide and limits, dup, close, fork and exec stay the kernel's business. /dev/null opened for no access has nothing that
 * one client could do to another, and poll and select say of it what they say of a regular file. Where it cannot be had an empty
 * file will do that nobody can fill.
 */
static int holder;

void holder_init(void)
{
	if ((holder = open("/dev/null", NO_ACCESS | O_CLOEXEC)) >= 0)
		return;
	holder = memfd_create("imfs", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (holder < 0 || fcntl(holder, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE))
		lind_die("no descriptor to stand for files: %s", strerror(errno));
}

/* For the call that is being served, whose target is `cage`. Takes over the reference to `f`. */
int64_t give_fd(uint64_t cage, struct client *client, struct imfs_file *f, int stands, bool cloexec)
{
	int64_t fd = lind_dup_to_client(stands, cloexec);
	int r = 0;

	imfs_write_lock();
	if (fd >= 0)
		r = client->cage == cage ? imfs_fd_room(&client->p.fds, (uint32_t)fd) : -ESRCH;
	if (fd < 0 || r)
		imfs_file_drop(&fs, f);
	else
		imfs_fd_set(&fs, &client->p, (uint32_t)fd, f, cloexec);
	imfs_write_unlock();
	if (r) {
		lind_call_plain(SYS_close, cage, (uint64_t)fd, 0, 0, 0);
		return r;
	}
	return fd;
}

static int64_t open_at(const struct lind_call *c, int dir, int path, uint32_t flags, uint32_t mode)
{
	struct imfs_file *f;
	struct look l;
	bool fifo;
	int r = look(c, dir, path, imfs_open_follow(flags), false, &l), bad = imfs_open_flags(flags);

	if (r != OUTSIDE && bad) {
		if (!r)
			imfs_write_unlock();
		return bad;
	}
	if (r == OUTSIDE && (r = proc_info(c, l.client, l.at.path, flags, &f)) <= 0)
		return r ? r : give_fd(c->target, l.client, f, holder, flags & O_CLOEXEC);
	if (r)
		return look_elsewhere(c, path, r, &l);
	r = imfs_open(&fs, &l.client->p, &l.at, flags, mode, &f);
	fifo = !r && imfs_is_fifo(f);
	imfs_write_unlock();
	if (fifo)
		return fifo_opened(c, l.client, f, flags & O_CLOEXEC);
	return r ? r : give_fd(c->target, l.client, f, holder, flags & O_CLOEXEC);
}

int64_t on_open(const struct lind_call *c)
{
	return open_at(c, -1, 0, arg32(c, 1), arg32(c, 2));
}

int64_t on_creat(const struct lind_call *c)
{
	return open_at(c, -1, 0, CREAT_FLAGS, arg32(c, 1));
}

int64_t on_openat(const struct lind_call *c)
{
	return open_at(c, 0, 1, arg32(c, 2), arg32(c, 3));
}

/* Without its ways of walking, where the path is ours. */
int64_t on_openat2(const struct lind_call *c)
{
	struct lind_call plain = *c;
	struct look l;
	int r = look(c, 0, 1, IMFS_FOLLOW, false, &l);

	if (r == OUTSIDE)
		return look_elsewhere(c, 1, r, &l);
	if (!r)
		imfs_write_unlock();
	return (r = lind_openat2_plain(&plain)) ? r : on_openat(&plain);
}
