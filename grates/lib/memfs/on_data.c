/* Reading and writing. File contents go straight from chunks to the client's memory and back. */
#include <sys/uio.h>
#include <unistd.h>
#include "memfs.h"

#define RWF_KNOWN (RWF_HIPRI | RWF_DSYNC | RWF_SYNC | RWF_NOWAIT)
#define IOVS      1024

static const uint8_t zeros[IMFS_CHUNK];

#define PAGE   4096u
#define SECOND 1000000000

/* As lind_write_part. */
static size_t part_from_client(struct lind_arg from, uint8_t *to, size_t length)
{
	size_t done_bytes = 0;

	while (done_bytes < length) {
		size_t piece = PAGE - (size_t)((from.value + done_bytes) % PAGE);

		piece = piece < length - done_bytes ? piece : length - done_bytes;
		if (lind_read(lind_at(from, done_bytes), to + done_bytes, piece))
			break;
		done_bytes += piece;
	}
	return done_bytes;
}

/* Bytes that are below and not here go from there to the client. Bytes that somebody has cut off
 * there meanwhile are zeros. */
static int64_t straight_to_client(int fd, struct lind_arg to, size_t length, int64_t off)
{
	struct lind_arg none = { 0, to.cage };
	size_t done_bytes = 0;
	int64_t r = 1;

	for (; done_bytes < length && r > 0; done_bytes += r > 0 ? (size_t)r : 0)
		r = lind_call(SYS_pread64, to.cage, (struct lind_arg){ (uint64_t)fd, lind_self() },
		    lind_at(to, done_bytes), (struct lind_arg){ length - done_bytes, to.cage },
		    (struct lind_arg){ (uint64_t)off + done_bytes, to.cage }, none, none);
	while (!r && done_bytes < length) {
		size_t piece = length - done_bytes < sizeof zeros ? length - done_bytes : sizeof zeros;

		if (lind_write(lind_at(to, done_bytes), zeros, piece))
			r = -EFAULT;
		else
			done_bytes += piece;
	}
	return done_bytes ? (int64_t)done_bytes : r;
}

/* Whether reading that needs nothing to be loaded. */
static bool is_ready(const struct imfs_node *n, int64_t off, uint64_t length)
{
	uint64_t left = off < 0 || off >= n->size ? 0 : (uint64_t)(n->size - off);
	size_t piece;
	int fd;

	for (left = length < left ? length : left; left; left -= piece, off += (int64_t)piece) {
		size_t in = IMFS_CHUNK - (size_t)off % IMFS_CHUNK;

		if ((piece = imfs_below->straight(n, off, left < MAX_TRANSFER ? (size_t)left : MAX_TRANSFER, &fd)))
			continue;
		if (!imfs_data_there(n, off, 1))
			return false;
		piece = left < in ? (size_t)left : in;
	}
	return true;
}

/* A lock is held for reading at least, and for writing unless is_ready says that it may be read. */
int64_t data_to_client(struct imfs_file *f, struct lind_arg to, uint64_t length, int64_t off)
{
	struct imfs_node *n = f->node;
	size_t done_bytes = 0, total, run;
	int r = imfs_may_read(f);

	if (r)
		return r;
	if (off < 0)
		return -EINVAL;
	if (off >= n->size || !length)
		return 0;
	if (length > MAX_TRANSFER)
		length = MAX_TRANSFER;
	if (length > (uint64_t)(n->size - off))
		length = (uint64_t)(n->size - off);
	for (total = (size_t)length; done_bytes < total; done_bytes += run) {
		const uint8_t *from;
		int fd;

		if (n->lazy && (run = imfs_below->straight(n, off + (int64_t)done_bytes, total - done_bytes, &fd))) {
			int64_t got = straight_to_client(fd, lind_at(to, done_bytes), run, off + (int64_t)done_bytes);

			if (got < (int64_t)run)
				return done_bytes + (got > 0 ? (size_t)got : 0)
				    ? (int64_t)done_bytes + (got > 0 ? got : 0)
				    : got;
			continue;
		}
		if (n->lazy && (r = imfs_data_load(&fs, n, off + (int64_t)done_bytes)))
			return done_bytes ? (int64_t)done_bytes : r;
		from = imfs_data_run(n, off + (int64_t)done_bytes, total - done_bytes, &run);
		if (lind_write(lind_at(to, done_bytes), from ? from : zeros, run)) {
			done_bytes += lind_write_part(lind_at(to, done_bytes), from ? from : zeros, run);
			return done_bytes ? (int64_t)done_bytes : -EFAULT;
		}
	}
	imfs_was_read(f);
	return (int64_t)total;
}

static struct timespec time_of(int64_t nanoseconds)
{
	return (struct timespec){ .tv_sec = nanoseconds / SECOND, .tv_nsec = (long)(nanoseconds % SECOND) };
}

/* The lock is held for writing. */
int64_t data_from_client(
    const struct imfs_process *p, struct imfs_file *f, struct lind_arg from, uint64_t length, int64_t off)
{
	int64_t now = -1, largest = imfs_largest(p);
	struct imfs_node *n = f->node;
	size_t done_bytes = 0, total, run;
	int r = imfs_may_write(f);

	if (r)
		return r;
	if (off < 0)
		return -EINVAL;
	if (!length)
		return 0;
	if (f->flags & O_APPEND)
		off = n->size;
	if (off >= largest)
		return -EFBIG;
	if (length > MAX_TRANSFER)
		length = MAX_TRANSFER;
	if (length > (uint64_t)(largest - off))
		length = (uint64_t)(largest - off);
	for (total = (size_t)length; done_bytes < total; done_bytes += run) {
		int64_t at = off + (int64_t)done_bytes;
		uint8_t *to = imfs_data_reserve(&fs, n, at, total - done_bytes, &run);

		if (!to) {
			r = -ENOSPC;
			break;
		}
		if ((now = lind_read_timed(lind_at(from, done_bytes), to, run)) < 0) {
			size_t part = part_from_client(lind_at(from, done_bytes), to, run);
			int64_t end = at + (int64_t)part;

			if (end < n->size)
				end = n->size;
			/* Bytes behind the end must not show. */
			if (at + (int64_t)run > end)
				memset(to + (end - at), 0, run - (size_t)(end - at));
			done_bytes += part;
			r = -EFAULT;
			break;
		}
		if (at + (int64_t)run > n->size)
			n->size = at + (int64_t)run;
	}
	if (!done_bytes && total)
		return r;
	imfs_wrote(n, &p->cred, off + (int64_t)done_bytes, now < 0 ? imfs_now() : time_of(now));
	return (int64_t)done_bytes;
}

/* Two threads of a client that read through one description take turns, as on Linux. */
void pos_lock(struct imfs_file *f)
{
	imfs_take(&f->pos_lock);
}

void pos_unlock(struct imfs_file *f)
{
	imfs_give(&f->pos_lock);
}

/*
 * The bytes at `off`, up to `*length` of them, if they are in one piece and reading them changes
 * nothing: what most reads want. The kernel copies them to the client when the handler has
 * returned, and gives the lock back after that.
 */
static inline const uint8_t *plain_bytes(const struct imfs_file *f, int64_t off, uint64_t *length)
{
	const struct imfs_node *n = f->node;
	const struct imfs_chunk *chunk;
	uint64_t left, index = (uint64_t)off / IMFS_CHUNK;
	uint32_t in = (uint32_t)((uint64_t)off % IMFS_CHUNK);

	/* Only for a descriptor that may read, inside the file. Chunks are sorted, so without holes before
	 * it, chunk i is at place i. */
	if (f->flags & (O_PATH | O_WRONLY) || (uint64_t)off >= (uint64_t)n->size || index >= n->data.count)
		return NULL;
	chunk = &n->data.chunks[index];
	left = (uint64_t)(n->size - off);
	*length = *length < left ? *length : left;
	if (chunk->index != index || *length > chunk->room - in || in >= chunk->room || !imfs_is_fresh(n))
		return NULL;
	return chunk->data + in;
}

/* Whether it takes the lock for writing to read that: it has to be loaded first, or somebody is
 * told. */
static bool changes(const struct imfs_file *f, uint64_t length, int64_t off)
{
	return S_ISREG(f->node->mode) &&
	    (imfs_is_watched(f->node) || (f->node->lazy && !is_ready(f->node, off, length)));
}

static int64_t read_changing(const struct lind_call *c, bool at_pos)
{
	struct client *client = client_of(c->args[0].cage);
	struct imfs_file *f;
	int64_t r;

	imfs_write_lock();
	if (!(f = fd_of(client, c->args[0])))
		return done(-EBADF);
	r = data_to_client(f, c->args[1], c->args[2].value, at_pos ? f->pos : (int64_t)c->args[3].value);
	if (at_pos && r > 0)
		f->pos += r;
	if (r > 0)
		imfs_tell(f->node, IN_ACCESS);
	return done(r);
}

int64_t on_pread64(const struct lind_call *c)
{
	struct client *client = client_of(c->args[0].cage);
	uint64_t length = c->args[2].value;
	int32_t *lock = imfs_read_lock();
	struct imfs_file *f = fd_of(client, c->args[0]);
	const uint8_t *bytes;
	int64_t r;

	if (!f) {
		imfs_read_unlock();
		return lind_forward(c);
	}
	if (length && !imfs_watches && (bytes = plain_bytes(f, (int64_t)c->args[3].value, &length)))
		return lind_answer_from(c, c->args[1], bytes, (size_t)length, lock);
	if (changes(f, length, (int64_t)c->args[3].value)) {
		imfs_read_unlock();
		return read_changing(c, false);
	}
	r = data_to_client(f, c->args[1], c->args[2].value, (int64_t)c->args[3].value);
	if (!r && is_stream(f))
		r = -ESPIPE;
	imfs_read_unlock();
	return r;
}

/* read and write of what has no bytes of the kind that others have. */
static int64_t plain_stream(const struct lind_call *c, bool put)
{
	struct iovec all = { (void *)(uintptr_t)c->args[1].value,
		c->args[2].value < MAX_TRANSFER ? (size_t)c->args[2].value : MAX_TRANSFER };

	return c->args[1].value > UINTPTR_MAX ? -EFAULT : stream_io(c, &all, 1, put, true);
}

int64_t on_read(const struct lind_call *c)
{
	struct client *client = client_of(c->args[0].cage);
	struct imfs_file *f;
	bool stream;
	int64_t r;

	imfs_read_lock();
	if (!(f = fd_of(client, c->args[0]))) {
		imfs_read_unlock();
		return lind_forward(c);
	}
	pos_lock(f);
	if (changes(f, c->args[2].value, f->pos)) {
		pos_unlock(f);
		imfs_read_unlock();
		return read_changing(c, true);
	}
	r = data_to_client(f, c->args[1], c->args[2].value, f->pos);
	if (r > 0)
		f->pos += r;
	stream = !r && is_stream(f);
	pos_unlock(f);
	imfs_read_unlock();
	return stream ? plain_stream(c, false) : r;
}

int64_t on_pwrite64(const struct lind_call *c)
{
	struct client *client = client_of(c->args[0].cage);
	struct imfs_file *f;
	uint32_t flags;
	int64_t r;

	imfs_write_lock();
	if (!(f = fd_of(client, c->args[0]))) {
		imfs_write_unlock();
		return lind_forward(c);
	}
	r = imfs_is_fifo(f)
	    ? -ESPIPE
	    : data_from_client(&acting(c, client)->p, f, c->args[1], c->args[2].value, (int64_t)c->args[3].value);
	flags = f->flags;
	imfs_write_unlock();
	return kept(sized(c, client, r), flags);
}

static void moved(struct imfs_file *f, int64_t written)
{
	if (written > 0)
		f->pos = f->flags & O_APPEND ? f->node->size : f->pos + written;
}

int64_t on_write(const struct lind_call *c)
{
	struct client *client = client_of(c->args[0].cage);
	struct imfs_file *f;
	uint32_t flags;
	bool fifo;
	int64_t r;

	/* Most writes are to a terminal or a pipe: do not stop everybody for those. */
	imfs_read_lock();
	f = fd_of(client, c->args[0]);
	fifo = f && imfs_is_fifo(f);
	imfs_read_unlock();
	if (!f)
		return lind_forward(c);
	if (fifo)
		return plain_stream(c, true);
	imfs_write_lock();
	if (!(f = fd_of(client, c->args[0])) || imfs_is_fifo(f))
		return done(-EBADF);
	r = data_from_client(&acting(c, client)->p, f, c->args[1], c->args[2].value, f->pos);
	moved(f, r);
	flags = f->flags;
	imfs_write_unlock();
	return kept(sized(c, client, r), flags);
}

/* The iovec calls, with the flags of preadv2. `off` NULL: at the file's position. */
static int64_t vector(const struct lind_call *c, bool writing, const int64_t *off, uint32_t rwf)
{
	struct client *client = client_of(c->args[0].cage);
	struct iovec iov[IOVS];
	struct imfs_file *f;
	uint64_t count = lind_arg32(c, 2);
	int64_t total = 0, at, r = 0;
	uint32_t flags;
	bool stream;

	imfs_read_lock();
	f = fd_of(client, c->args[0]);
	stream = f && is_stream(f);
	imfs_read_unlock();
	if (!f)
		return lind_forward(c);
	if (stream && off)
		return -ESPIPE;
	if ((r = lind_read_iovec(c->args[1], count, iov, IOVS)))
		return r;
	if (off && *off < 0)
		return -EINVAL;
	if (stream)
		return stream_io(c, iov, count, writing, !(rwf & RWF_NOWAIT));
	imfs_write_lock();
	if (!(f = fd_of(client, c->args[0])) || is_stream(f))
		return done(-EBADF);
	if ((r = writing ? imfs_may_write(f) : imfs_may_read(f)))
		return done(r);
	flags = f->flags;
	f->flags |= rwf & RWF_APPEND ? O_APPEND : 0;
	at = off ? *off : f->pos;
	for (uint64_t i = 0; i < count; i++) {
		struct lind_arg base = { (uintptr_t)iov[i].iov_base, c->args[1].cage };

		r = writing ? data_from_client(&acting(c, client)->p, f, base, iov[i].iov_len, at + total)
			    : data_to_client(f, base, iov[i].iov_len, at + total);
		if (r < 0)
			break;
		total += r;
		if ((size_t)r < iov[i].iov_len)
			break;
	}
	if (!off) {
		if (writing)
			moved(f, total);
		else
			f->pos += total;
	}
	f->flags = flags;
	if (total && !writing)
		imfs_tell(f->node, IN_ACCESS);
	r = sized(c, client, done(total ? total : r));
	return writing ? kept(r, flags | (rwf & (RWF_DSYNC | RWF_SYNC) ? O_DSYNC : 0)) : r;
}

int64_t on_readv(const struct lind_call *c)
{
	return vector(c, false, NULL, 0);
}

int64_t on_writev(const struct lind_call *c)
{
	return vector(c, true, NULL, 0);
}

int64_t on_preadv(const struct lind_call *c)
{
	int64_t off = (int64_t)c->args[3].value;

	return vector(c, false, &off, 0);
}

int64_t on_pwritev(const struct lind_call *c)
{
	int64_t off = (int64_t)c->args[3].value;

	return vector(c, true, &off, 0);
}

/* preadv2 and pwritev2: the offset is one argument, the next is not used, then flags; -1 is the
 * position. */
static int64_t vector2(const struct lind_call *c, bool writing)
{
	int64_t off = (int64_t)c->args[3].value;
	uint32_t flags = lind_arg32(c, 5);
	struct client *client = client_of(c->args[0].cage);
	bool ours;

	imfs_read_lock();
	ours = fd_of(client, c->args[0]);
	imfs_read_unlock();
	if (ours && (flags & ~(uint32_t)(RWF_KNOWN | RWF_APPEND)))
		return -EOPNOTSUPP;
	return vector(c, writing, off == -1 ? NULL : &off, flags);
}

int64_t on_preadv2(const struct lind_call *c)
{
	return vector2(c, false);
}

int64_t on_pwritev2(const struct lind_call *c)
{
	return vector2(c, true);
}

/* Looking for holes may have to read what lies below. */
static int64_t seek_below(const struct lind_call *c)
{
	struct client *client = client_of(c->args[0].cage);
	struct imfs_file *f;

	imfs_write_lock();
	if (!(f = fd_of(client, c->args[0])))
		return done(-EBADF);
	return done(imfs_lseek(f, (int64_t)c->args[1].value, (int)lind_arg32(c, 2)));
}

int64_t on_lseek(const struct lind_call *c)
{
	struct client *client = client_of(c->args[0].cage);
	struct imfs_file *f;
	int64_t r;

	imfs_read_lock();
	if (!(f = fd_of(client, c->args[0]))) {
		imfs_read_unlock();
		return lind_forward(c);
	}
	if (f->node->lazy && lind_arg32(c, 2) >= SEEK_DATA) {
		imfs_read_unlock();
		return seek_below(c);
	}
	pos_lock(f);
	r = imfs_lseek(f, (int64_t)c->args[1].value, (int)lind_arg32(c, 2));
	pos_unlock(f);
	imfs_read_unlock();
	return r;
}
