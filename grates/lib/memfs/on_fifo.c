/*
 * Fifos as clients see them: who waits sleeps on the fifo's word, and a client's number is a
 * duplicate of an eventfd that is as ready as the fifo, so that poll, select and epoll are the
 * kernel's business.
 */
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>
#include "memfs.h"

#define FULL (UINT64_MAX - 1) /* an eventfd that holds this cannot be written to */

enum shown { NO_DATA, DATA, NO_ROOM };

/* The bytes that are still to be moved. */
struct rest {
	const struct iovec *iov;
	uint64_t cage, left;
	size_t in;   /* bytes of the first that are done */
};

/*
 * Sets the descriptor to what poll(2) is to say. Its count is 0 (no data, room), 1 or more (data,
 * room) or FULL (data, no room). New data are added, also to others: who waits for edges sees each.
 * The end is data, and no readers are room: on_poll.c says better, but epoll does not.
 */
static void show(struct imfs_fifo *fifo)
{
	bool data = fifo->used || (!fifo->writers && fifo->writes_opened);
	enum shown now = fifo->readers && IMFS_FIFO - fifo->used < IMFS_PIPE_BUF ? NO_ROOM : data ? DATA : NO_DATA;
	uint64_t count = now == NO_ROOM ? FULL : 1;

	if (fifo->ready < 0 || (now == (enum shown)fifo->shown && now != DATA))
		return;
	if (now != (enum shown)fifo->shown && fifo->shown != NO_DATA)
		(void)!read(fifo->ready, &(uint64_t){ 0 }, sizeof(uint64_t));
	if (now != NO_DATA)
		(void)!write(fifo->ready, &count, sizeof count);
	fifo->shown = now;
}

/* Under the lock, and nothing here waits: the descriptor is non-blocking. */
static void changed(struct imfs_fifo *fifo)
{
	if (fifo->sleepers)
		lind_wake(&fifo->word);
	show(fifo);
}

static unsigned open_now;

bool fifos_open(void)
{
	return __atomic_load_n(&open_now, __ATOMIC_RELAXED);
}

static void ended(int ready)
{
	if (ready < 0)
		return;
	close(ready);
	__atomic_fetch_sub(&open_now, 1, __ATOMIC_RELAXED);
}

void fifo_init(void)
{
	imfs_fifo_changed = changed;
	imfs_fifo_ended = ended;
}

/* Until the fifo changes. The write lock is held, given back meanwhile, and held again; `f`,
 * which the caller has a reference to, stays. */
static int64_t sleep_on(uint64_t cage, struct imfs_fifo *fifo)
{
	uint32_t word = fifo->word;
	int64_t r;

	fifo->sleepers++;
	imfs_write_unlock();
	r = lind_wait(cage, &fifo->word, word, NULL);
	imfs_write_lock();
	fifo->sleepers--;
	return r == -EINTR ? r : 0;
}

int64_t fifo_opened(const struct lind_call *c, struct client *client, struct imfs_file *f, bool cloexec)
{
	int fresh = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	struct imfs_fifo *fifo;
	uint32_t partners;
	bool writes = !imfs_may_write(f);
	int64_t r = fresh < 0 ? -errno : 0;

	imfs_write_lock();
	fifo = f->node->fifo;
	if (!r && fifo->ready < 0) {
		fifo->ready = fresh;
		fresh = -1;
		__atomic_fetch_add(&open_now, 1, __ATOMIC_RELAXED);
		show(fifo);
	}
	/* A partner that came and has gone again is enough: fifo(7). */
	partners = writes ? fifo->reads_opened : fifo->writes_opened;
	while (!r && imfs_fifo_alone(f) && partners == (writes ? fifo->reads_opened : fifo->writes_opened))
		r = sleep_on(c->target, fifo);
	if (r)
		imfs_file_drop(&fs, f);
	imfs_write_unlock();
	if (fresh >= 0)
		close(fresh);
	return r ? r : give_fd(c->target, client, f, fifo->ready, cloexec);
}

/* Moves what goes now: how much, or 0 at the end, or why nothing does. */
static int64_t move(struct imfs_fifo *fifo, struct rest *rest, bool put)
{
	int64_t moved = 0, r = 0;

	while (rest->left) {
		const uint8_t *from = NULL;
		uint8_t *to = NULL;
		struct lind_arg at;

		if ((r = put ? imfs_fifo_room(fifo, rest->left, &to) : imfs_fifo_data(fifo, &from)) <= 0)
			break;
		for (; rest->in == rest->iov->iov_len; rest->in = 0)
			rest->iov++;
		at = (struct lind_arg){ (uintptr_t)rest->iov->iov_base + rest->in, rest->cage };
		if ((uint64_t)r > rest->iov->iov_len - rest->in)
			r = (int64_t)(rest->iov->iov_len - rest->in);
		if (put ? lind_read(at, to, (size_t)r) : lind_write(at, from, (size_t)r)) {
			r = -EFAULT;
			break;
		}
		put ? imfs_fifo_put(fifo, (uint32_t)r) : imfs_fifo_took(fifo, (uint32_t)r);
		rest->in += (size_t)r;
		rest->left -= (uint64_t)r;
		moved += r;
	}
	return moved ? moved : r;
}

/* The write lock is held. A read ends with what there is, a write with all that was to be
 * written. */
static int64_t move_or_wait(uint64_t cage, struct imfs_file *f, struct rest *rest, bool put, bool wait)
{
	int64_t total = 0, r = put ? imfs_may_write(f) : imfs_may_read(f);

	while (!r && rest->left) {
		if ((r = move(f->node->fifo, rest, put)) > 0)
			total += r;
		if (r > 0 && put && rest->left)
			r = -EAGAIN;
		if (r != -EAGAIN || !wait || f->flags & O_NONBLOCK)
			break;
		r = sleep_on(cage, f->node->fifo);
	}
	if (total) {
		f->node->mtime = f->node->ctime = put ? imfs_now() : f->node->mtime;
		imfs_tell(f->node, put ? IN_MODIFY : IN_ACCESS);
	}
	return total ? total : r;
}

static int64_t fifo_io(const struct lind_call *c, const struct iovec *iov, uint64_t count, bool put, bool wait)
{
	struct client *client = client_of(c->args[0].cage);
	struct rest rest = { .iov = iov, .cage = c->args[1].cage };
	struct imfs_file *f;
	bool broken;
	int64_t r;

	for (uint64_t i = 0; i < count; i++)
		rest.left += iov[i].iov_len;
	if (rest.left > MAX_TRANSFER)
		rest.left = MAX_TRANSFER;
	/* The last writer may be one in a message that nobody will receive. */
	travel_settle();
	imfs_write_lock();
	/* Another thread may have put another file there. */
	if (!(f = fd_of(client, c->args[0])) || !imfs_is_fifo(f))
		return done(-EBADF);
	f->refs++;
	r = move_or_wait(c->target, f, &rest, put, wait);
	broken = put && rest.left && !f->node->fifo->readers && !imfs_may_write(f);
	imfs_file_drop(&fs, f);
	imfs_write_unlock();
	if (broken)
		signal_thread(c->target, SIGPIPE);
	return r;
}

int64_t stream_io(const struct lind_call *c, const struct iovec *iov, uint64_t count, bool put, bool wait)
{
	struct imfs_file *f;
	bool watcher;

	imfs_read_lock();
	watcher = (f = fd_of(client_of(c->args[0].cage), c->args[0])) && f->node->watcher;
	imfs_read_unlock();
	return !watcher ? fifo_io(c, iov, count, put, wait) : put ? -EBADF : watcher_read(c, iov, count, wait);
}
