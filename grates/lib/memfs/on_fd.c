/* Descriptors: what is done with a number rather than with a file. The kernel does it too, to
 * the number. */
#include <lind/entries.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include "memfs.h"

#define SETTABLE         (O_APPEND | O_NONBLOCK | O_NOATIME | O_DIRECT)
#define FIGETBSZ_        2u
#define F_CREATED_QUERY_ 1028u

bool fd_ours(const struct lind_call *c, int i)
{
	struct client *client = client_of(c->args[i].cage);
	bool yes;

	imfs_read_lock();
	yes = fd_of(client, c->args[i]);
	imfs_read_unlock();
	return yes;
}

struct imfs_file *fd_take(const struct lind_call *c, int i, struct client **client)
{
	struct imfs_file *f;

	*client = client_of(c->args[i].cage);
	imfs_write_lock();
	if (!(f = fd_of(*client, c->args[i])))
		imfs_write_unlock();
	return f;
}

/* First ours, then the number: once the kernel has let go of it, another thread may get it. */
int64_t on_close(const struct lind_call *c)
{
	struct client *client = client_of(c->args[0].cage), *held;
	int64_t r;

	/* Others hardly come here: see fd_calls. They may wait for what they close. */
	if (client->threaded && !fd_ours(c, 0))
		return lind_forward(c);
	held = numbers_hold(client);
	if (fd_take(c, 0, &client)) {
		imfs_fd_clear(&fs, &client->p, lind_arg32(c, 0));
		imfs_write_unlock();
	}
	r = lind_forward(c);
	numbers_release(held);
	return r;
}

static void each_of_range(const struct lind_call *c, bool close)
{
	struct client *client = client_of(c->target);
	struct imfs_process *p = &client->p;

	imfs_write_lock();
	for (uint32_t fd = lind_arg32(c, 0); client->cage == c->target && fd < p->fds.room && fd <= lind_arg32(c, 1);
	    fd++)
		if (close)
			imfs_fd_clear(&fs, p, fd);
		else
			p->fds.cloexec[fd] = 1;
	imfs_write_unlock();
}

/* As on_close. A call that the kernel refuses closes nothing. */
int64_t on_close_range(const struct lind_call *c)
{
	bool marks = lind_arg32(c, 2) == CLOSE_RANGE_CLOEXEC;
	struct client *held = numbers_hold(client_of(c->target));
	int64_t r;

	if (!lind_arg32(c, 2))
		each_of_range(c, true);
	r = lind_forward(c);
	if (!r && marks)
		each_of_range(c, false);
	numbers_release(held);
	return r;
}

/* The kernel duplicates the first argument as a number of `cage`, and so do we: a grate may do
 * that from one cage to another. */
static int64_t duplicate(const struct lind_call *c, uint64_t cage, bool cloexec)
{
	struct client *from = client_of(c->args[0].cage), *to = client_of(cage), *held = numbers_hold(to);
	int64_t new = lind_forward(c);
	struct imfs_file *f;
	int r = 0;

	if (new < 0) {
		numbers_release(held);
		return new;
	}
	imfs_write_lock();
	f = fd_of(from, c->args[0]);
	if (to->cage != cage)
		r = -ESRCH;
	else if (!f)
		imfs_fd_clear(&fs, &to->p, (uint32_t)new);
	else if ((from != to || (uint32_t)new != lind_arg32(c, 0)) && !(r = imfs_fd_room(&to->p.fds, (uint32_t)new))) {
		f->refs++;
		imfs_fd_set(&fs, &to->p, (uint32_t)new, f, cloexec);
	}
	imfs_write_unlock();
	if (r)
		lind_call_plain(SYS_close, cage, (uint64_t)new, 0, 0, 0);
	numbers_release(held);
	return r ? r : new;
}

int64_t on_dup(const struct lind_call *c)
{
	return duplicate(c, c->target, false);
}

int64_t on_dup2(const struct lind_call *c)
{
	return duplicate(c, c->args[1].cage, false);
}

int64_t on_dup3(const struct lind_call *c)
{
	return duplicate(c, c->args[1].cage, lind_arg32(c, 2) & O_CLOEXEC);
}

static int64_t set_flags(const struct lind_call *c)
{
	struct client *client;
	struct imfs_file *f = fd_take(c, 0, &client);

	if (!f)
		return -EBADF;
	f->flags = (f->flags & ~(uint32_t)SETTABLE) | (lind_arg32(c, 2) & SETTABLE);
	return done(0);
}

static int64_t set_cloexec(const struct lind_call *c, bool cloexec)
{
	struct client *client, *held = numbers_hold(client_of(c->args[0].cage));
	int64_t r = lind_call_plain(SYS_fcntl, c->args[0].cage, lind_arg32(c, 0), F_SETFD, cloexec, 0);

	if (r >= 0 && fd_take(c, 0, &client)) {
		client->p.fds.cloexec[lind_arg32(c, 0)] = cloexec;
		imfs_write_unlock();
	}
	numbers_release(held);
	return r;
}

static int64_t get_flags(const struct lind_call *c)
{
	struct client *client;
	struct imfs_file *f = fd_take(c, 0, &client);

	return f ? done(f->flags) : -EBADF;
}

/* All fifos hold as much. */
static int64_t pipe_size(const struct lind_call *c, uint32_t cmd)
{
	struct client *client;
	struct imfs_file *f = fd_take(c, 0, &client);

	if (!f || !imfs_is_fifo(f))
		return f ? done(-EBADF) : -EBADF;
	return done(cmd == F_SETPIPE_SZ && lind_arg32(c, 2) > IMFS_FIFO ? -EPERM : (int64_t)IMFS_FIFO);
}

/* Whether the file is not open, only named. */
static bool path_only(const struct lind_call *c)
{
	struct client *client;
	struct imfs_file *f = fd_take(c, 0, &client);

	return f && done(f->flags & O_PATH);
}

/* Whether it was this open that made the file. */
static int64_t created(const struct lind_call *c)
{
	struct client *client;
	struct imfs_file *f = fd_take(c, 0, &client);

	return f ? done(f->created) : -EBADF;
}

/* The commands for a file that is open with O_PATH. */
static bool about_number(uint32_t cmd)
{
	return cmd == F_DUPFD || cmd == F_DUPFD_CLOEXEC || cmd == F_GETFD || cmd == F_SETFD || cmd == F_GETFL;
}

int64_t on_fcntl(const struct lind_call *c)
{
	uint32_t cmd = lind_arg32(c, 1);

	if (!fd_ours(c, 0))
		return lind_forward(c);
	if (!about_number(cmd) && path_only(c))
		return -EBADF;
	switch (cmd) {
	case F_DUPFD:
	case F_DUPFD_CLOEXEC:
		return duplicate(c, c->target, cmd == F_DUPFD_CLOEXEC);
	case F_GETFD:
		return lind_forward(c);
	case F_SETFD:
		return set_cloexec(c, lind_arg32(c, 2) & 1);
	case F_GETFL:
		return get_flags(c);
	case F_SETFL:
		return set_flags(c);
	case F_GETLK:
	case F_SETLK:
	case F_SETLKW:
	case F_OFD_GETLK:
	case F_OFD_SETLK:
	case F_OFD_SETLKW:
		return record_lock(c, cmd);
	case F_SETPIPE_SZ:
	case F_GETPIPE_SZ:
		return pipe_size(c, cmd);
	case F_GETLEASE:
		return F_UNLCK;
	case F_CREATED_QUERY_:
		return created(c);
	case F_NOTIFY:
		return lind_arg32(c, 2) & ~DN_MULTISHOT ? -EINVAL : 0; /* without events it ends what there is not */
	default:
		/* Owners and signals of asynchronous notice belong to the number. */
		return cmd >= F_SETOWN && cmd <= F_GETOWN_EX ? lind_forward(c) : -EINVAL;
	}
}

static int64_t bytes_left(const struct lind_call *c)
{
	struct client *client;
	struct imfs_file *f = fd_take(c, 0, &client);
	int64_t left;
	int32_t answer;

	if (!f)
		return -EBADF;
	if (!S_ISREG(f->node->mode) && !is_stream(f))
		return done(-ENOTTY);
	left = f->node->watcher ? watcher_waits(f->node->watcher)
	    : imfs_is_fifo(f)   ? f->node->fifo->used
				: f->node->size - f->pos;
	imfs_write_unlock();
	answer = left < 0 ? 0 : left > INT32_MAX ? INT32_MAX : (int32_t)left;
	return lind_write(c->args[2], &answer, sizeof answer);
}

/* The bytes that a file or a directory takes, which stat reports in blocks. */
static int64_t bytes_taken(const struct lind_call *c)
{
	struct client *client;
	struct imfs_file *f = fd_take(c, 0, &client);
	int64_t taken;

	if (!f)
		return -EBADF;
	if (!S_ISREG(f->node->mode) && !S_ISDIR(f->node->mode))
		return done(-ENOTTY);
	taken = f->node->data.allocated / 512 * 512;
	imfs_write_unlock();
	return lind_write(c->args[2], &taken, sizeof taken);
}

/* Which fifos and watchers heed. */
static int64_t set_nonblock(const struct lind_call *c)
{
	struct client *client;
	struct imfs_file *f;
	int32_t on;
	int r = lind_read(c->args[2], &on, sizeof on);

	if (r || !(f = fd_take(c, 0, &client)))
		return r ? r : -EBADF;
	f->flags = (f->flags & ~(uint32_t)O_NONBLOCK) | (on ? O_NONBLOCK : 0);
	return done(0);
}

int64_t on_ioctl(const struct lind_call *c)
{
	if (!fd_ours(c, 0))
		return lind_forward(c);
	if (path_only(c))
		return -EBADF;
	switch (lind_arg32(c, 1)) {
	case FIOCLEX:
	case FIONCLEX:
		return set_cloexec(c, lind_arg32(c, 1) == FIOCLEX);
	case FIONBIO:
		return set_nonblock(c);
	case FIONREAD:
		return bytes_left(c);
	case FIOQSIZE:
		return bytes_taken(c);
	case 0x40049409:
	case 0x4020940d:
	case 0xc0189436: /* FICLONE, FICLONERANGE, FIDEDUPERANGE */
		return on_clone_request(c, lind_arg32(c, 1));
	case FIGETBSZ_:
		return lind_write(c->args[2], &(int32_t){ 4096 }, sizeof(int32_t));
	default:
		return -ENOTTY;
	}
}

/* The file of ours that the call is about, with the lock held. NULL, and `r` is the answer: it
 * is somebody else's, or open as a path only. */
static struct imfs_file *take_opened(const struct lind_call *c, struct client **client, int64_t *r)
{
	struct imfs_file *f = fd_ours(c, 0) ? fd_take(c, 0, client) : NULL;

	if (f)
		*client = acting(c, *client);
	if (f && !(f->flags & O_PATH))
		return f;
	*r = f ? done(-EBADF) : lind_forward(c);
	return NULL;
}

int64_t on_ftruncate(const struct lind_call *c)
{
	struct client *client;
	int64_t r;
	struct imfs_file *f = take_opened(c, &client, &r);

	if (!f)
		return r;
	if (S_ISDIR(f->node->mode) || imfs_may_write(f))
		return done(-EINVAL);
	return sized(c, client, done(imfs_truncate(&fs, f->node, &client->p, (int64_t)c->args[1].value)));
}

int64_t on_fallocate(const struct lind_call *c)
{
	struct client *client;
	int64_t r;
	struct imfs_file *f = take_opened(c, &client, &r);

	if (!f)
		return r;
	return sized(c, client,
	    done(imfs_fallocate(
		&fs, f, &client->p, (int)lind_arg32(c, 1), (int64_t)c->args[2].value, (int64_t)c->args[3].value)));
}

int64_t on_fadvise64(const struct lind_call *c)
{
	if (!fd_ours(c, 0))
		return lind_forward(c);
	return lind_arg32(c, 3) > POSIX_FADV_NOREUSE || (int64_t)c->args[2].value < 0 ? -EINVAL : 0;
}

/* fsync and its kind: memory is as stable as it gets, but what is kept elsewhere goes there. */
int64_t on_sync(const struct lind_call *c)
{
	return !fd_ours(c, 0)                      ? lind_forward(c)
	    : path_only(c)                         ? -EBADF
	    : imfs_below && c->nr != SYS_readahead ? imfs_below->sync()
						   : 0;
}

int64_t on_sync_file_range(const struct lind_call *c)
{
	int64_t from = (int64_t)c->args[1].value, length = (int64_t)c->args[2].value;

	if (!fd_ours(c, 0))
		return lind_forward(c);
	return from < 0 || length < 0 || from > INT64_MAX - length || lind_arg32(c, 3) > 7 /* SYNC_FILE_RANGE_* */
	    ? -EINVAL
	    : 0;
}

int64_t on_getdents64(const struct lind_call *c)
{
	uint64_t buffer[1024];
	struct client *client;
	int64_t before, r;
	struct imfs_file *f = take_opened(c, &client, &r);
	uint64_t size = c->args[2].value;

	if (!f)
		return r;
	before = f->pos;
	r = imfs_getdents(&fs, f, buffer, size < sizeof buffer ? (size_t)size : sizeof buffer);
	if (r > 0 && c->nr == SYS_getdents)
		lind_entries_to_old(buffer, (size_t)r);
	if (r > 0 && lind_write(c->args[1], buffer, (size_t)r)) {
		f->pos = before;
		r = -EFAULT;
	}
	return done(r);
}
