/*
 * splice between a pipe of the kernel's and a file of ours. The data goes through a pipe of the
 * grate's own, which the kernel moves it to or from: so whether and how long the client's pipe is
 * waited for is the kernel's business. Nothing is taken from that before our file has received it.
 */
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>
#include "memfs.h"
#include "transfer.h"

#define FLAGS    15u /* SPLICE_F_* */
#define NONBLOCK 2u
#define MOST     IMFS_CHUNK

struct move {
	uint64_t cage;   /* for whom */
	struct lind_arg pipe;  /* the client's */
	struct side *file;
	size_t length;
	uint32_t flags;
	int own[2];
	char *buffer;
};

static int64_t between(
    const struct move *m, uint32_t nr, struct lind_arg from, struct lind_arg to, size_t length, uint32_t flags)
{
	struct lind_arg none = { 0, m->cage }, size = { length, m->cage }, how = { flags, m->cage };

	return nr == SYS_tee ? lind_call(nr, m->cage, from, to, size, how, none, none)
			     : lind_call(nr, m->cage, from, none, to, none, size, how);
}

static int64_t to_pipe(struct move *m)
{
	int64_t had = side_get(m->file, m->buffer, m->length), r;

	if (had <= 0)
		return had;
	if ((r = write(m->own[1], m->buffer, (size_t)had)) != had)
		r = -EIO;
	else
		r = between(m, SYS_splice, (struct lind_arg){ (uint64_t)m->own[0], lind_self() }, m->pipe, (size_t)had,
		    m->flags);
	side_unget(m->file, had - (r > 0 ? r : 0));
	return r;
}

static int64_t from_pipe(struct move *m)
{
	struct lind_arg own = { (uint64_t)m->own[1], lind_self() };
	int64_t had = between(m, SYS_tee, m->pipe, own, m->length, m->flags), r;

	if (had <= 0)
		return had;
	if (read(m->own[0], m->buffer, (size_t)had) != had)
		return -EIO;
	r = side_put(m->file, m->buffer, (size_t)had);
	/* The own pipe is empty again, and is not looked at any more. */
	if (r > 0)
		between(m, SYS_splice, m->pipe, own, (size_t)r, NONBLOCK);
	return r;
}

static int64_t move(struct move *m, bool out)
{
	int64_t r;
	int holds;

	if (!(m->buffer = malloc(m->length)))
		return -ENOMEM;
	/* This pipe blocks, because splice and tee would not wait otherwise. So no more may be put into
	 * it than it holds. */
	if (pipe2(m->own, O_CLOEXEC)) {
		free(m->buffer);
		return -ENOMEM;
	}
	if ((holds = fcntl(m->own[0], F_GETPIPE_SZ)) < 0)
		holds = 4096;
	m->length = m->length < (size_t)holds ? m->length : (size_t)holds;
	r = out ? to_pipe(m) : from_pipe(m);
	close(m->own[0]);
	close(m->own[1]);
	free(m->buffer);
	return r;
}

/* Checks two descriptors as Linux does; at least one is a file of ours. */
static int may_splice(const struct side *in, const struct side *out, const struct lind_call *c)
{
	const struct side *pipe = in->file ? out : in;
	struct lind_arg none = { 0, pipe->fd.cage };
	struct stat st = { 0 };
	int64_t r;

	if (in->file && out->file)
		return -EINVAL;
	if ((r = lind_call(SYS_fstat, pipe->fd.cage, pipe->fd, lind_mine(&st), none, none, none, none)) < 0)
		return (int)r;
	if (in->file ? imfs_may_read(in->file) == -EBADF : imfs_may_write(out->file))
		return -EBADF;
	if (!S_ISFIFO(st.st_mode))
		return -EINVAL;
	if (c->args[pipe == in ? 1 : 3].value)
		return -ESPIPE;
	if (!S_ISREG((in->file ? in : out)->file->node->mode) || (out->file && out->file->flags & O_APPEND))
		return -EINVAL;
	return 0;
}

static int64_t splice_sides(const struct lind_call *c, struct side *in, struct side *out)
{
	struct side *file = in->file ? in : out;
	struct move m = { .cage = c->target,
		.pipe = (in->file ? out : in)->fd,
		.file = file,
		.flags = lind_arg32(c, 5),
		.length = c->args[4].value < MOST ? (size_t)c->args[4].value : MOST };
	int64_t r;

	if (!m.length)
		return 0;
	if (m.flags & ~FLAGS)
		return -EINVAL;
	if ((r = may_splice(in, out, c)) || (r = move(&m, in->file)) <= 0)
		return r;
	return side_give_offset(file, c->args[in->file ? 1 : 3]) ? -EFAULT : r;
}

static bool one_is_ours(const struct lind_call *c, int second)
{
	struct client *in = client_of(c->args[0].cage), *out = client_of(c->args[second].cage);
	bool ours;

	imfs_read_lock();
	ours = fd_of(in, c->args[0]) || fd_of(out, c->args[second]);
	imfs_read_unlock();
	return ours;
}

int64_t on_splice(const struct lind_call *c)
{
	struct side in, out;
	int64_t r;

	if (!one_is_ours(c, 2))
		return lind_forward(c);
	if ((r = side_take(c, 0, c->args[1], &in)))
		return r;
	if ((r = side_take(c, 2, c->args[3], &out))) {
		side_give(&in);
		return r;
	}
	r = in.file || out.file ? splice_sides(c, &in, &out) : -EBADF;
	side_give(&in);
	return side_written(c, &out, r);
}

/* Between pipes only. */
int64_t on_tee(const struct lind_call *c)
{
	return !one_is_ours(c, 1) ? lind_forward(c) : c->args[2].value || lind_arg32(c, 3) & ~FLAGS ? -EINVAL : 0;
}
