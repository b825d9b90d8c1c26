/* From file to file: sendfile and copy_file_range, where at least one of the two is ours. */
#include <stdlib.h>
#include "memfs.h"
#include "transfer.h"

#define PIECE IMFS_CHUNK

int side_take(const struct lind_call *c, int fd, struct lind_arg off, struct side *s)
{
	int r;

	*s = (struct side){ .client = client_of(c->args[fd].cage), .fd = c->args[fd], .at_pos = !off.value };
	if (off.value && (r = lind_read(off, &s->off, sizeof s->off)))
		return r;
	if (s->off < 0)
		return -EINVAL;
	imfs_write_lock();
	if ((s->file = fd_of(s->client, s->fd)))
		s->file->refs++;
	imfs_write_unlock();
	return 0;
}

void side_give(struct side *s)
{
	if (!s->file)
		return;
	imfs_write_lock();
	imfs_file_drop(&fs, s->file);
	imfs_write_unlock();
}

int64_t side_written(const struct lind_call *c, struct side *s, int64_t r)
{
	uint32_t flags = s->file ? s->file->flags : 0;

	side_give(s);
	return s->file ? kept(sized(c, s->client, r), flags) : r;
}

static int64_t outside_io(struct side *s, uint32_t plain, uint32_t at_offset, const void *buffer, size_t length)
{
	struct lind_arg none = { 0, s->fd.cage }, size = { length, s->fd.cage };

	if (s->at_pos)
		return lind_call(plain, s->fd.cage, s->fd, lind_mine(buffer), size, none, none, none);
	return lind_call(at_offset, s->fd.cage, s->fd, lind_mine(buffer), size,
	    (struct lind_arg){ (uint64_t)s->off, s->fd.cage }, none, none);
}

/* So many bytes have gone through a side, or none if it is an errno; a file of ours is locked. */
static int64_t moved(struct side *s, int64_t r)
{
	if (r > 0 && s->file && s->at_pos)
		s->file->pos += r;
	if (s->file)
		imfs_write_unlock();
	if (r > 0)
		s->off += r;
	return r;
}

int64_t side_get(struct side *s, void *buffer, size_t length)
{
	if (!s->file)
		return moved(s, outside_io(s, SYS_read, SYS_pread64, buffer, length));
	imfs_write_lock();
	return moved(s, imfs_pread(&fs, s->file, buffer, length, s->at_pos ? s->file->pos : s->off));
}

int64_t side_put(struct side *s, const void *buffer, size_t length)
{
	if (!s->file)
		return moved(s, outside_io(s, SYS_write, SYS_pwrite64, buffer, length));
	imfs_write_lock();
	return moved(s, imfs_pwrite(&fs, &s->client->p, s->file, buffer, length, s->at_pos ? s->file->pos : s->off));
}

/* Gives bytes that were read and could not be written back to the position. */
void side_unget(struct side *s, int64_t bytes)
{
	s->off -= bytes;
	if (!s->at_pos)
		return;
	if (!s->file) {
		lind_call_plain(SYS_lseek, s->fd.cage, s->fd.value, (uint64_t)-bytes, SEEK_CUR, 0);
		return;
	}
	imfs_write_lock();
	s->file->pos -= bytes;
	imfs_write_unlock();
}

static int64_t transfer(struct side *in, struct side *out, uint64_t length)
{
	char *buffer = malloc(PIECE);
	int64_t total = 0, got = 0, put_bytes;

	if (!buffer)
		return -ENOMEM;
	while ((uint64_t)total < length) {
		size_t piece = length - (uint64_t)total < PIECE ? (size_t)(length - (uint64_t)total) : PIECE;

		if ((got = side_get(in, buffer, piece)) <= 0)
			break;
		put_bytes = side_put(out, buffer, (size_t)got);
		if (put_bytes > 0)
			total += put_bytes;
		if (put_bytes < got) {
			side_unget(in, got - (put_bytes > 0 ? put_bytes : 0));
			got = put_bytes < 0 ? put_bytes : 0;
			break;
		}
	}
	free(buffer);
	return total ? total : got;
}

int64_t side_give_offset(const struct side *s, struct lind_arg off)
{
	return off.value ? lind_write(off, &s->off, sizeof s->off) : 0;
}

/* sendfile(2) reads from a file with pages: not a pipe, a socket or a terminal, on which our
 * read would wait. */
static int64_t may_send(const struct side *in)
{
	int64_t r = lind_call_plain(SYS_lseek, in->fd.cage, in->fd.value, 0, SEEK_CUR, 0);

	return r != -ESPIPE ? r : in->at_pos ? -EINVAL : -ESPIPE;
}

int64_t on_sendfile(const struct lind_call *c)
{
	struct lind_arg nowhere = { 0, c->args[0].cage };
	uint64_t length = c->args[3].value < MAX_TRANSFER ? c->args[3].value : MAX_TRANSFER;
	struct side in, out;
	int64_t r;

	if ((r = side_take(c, 1, c->args[2], &in)))
		return r;
	if ((r = side_take(c, 0, nowhere, &out)) || (!in.file && !out.file)) {
		side_give(&in);
		return r ? r : lind_forward(c);
	}
	if ((in.file && imfs_is_fifo(in.file)) || (out.file && imfs_is_fifo(out.file)))
		r = -EINVAL;
	else if (in.file && imfs_may_read(in.file))
		r = S_ISDIR(in.file->node->mode) ? -EINVAL : -EBADF;
	else if (out.file && imfs_may_write(out.file))
		r = -EBADF;
	else if (out.file && (out.file->flags & O_APPEND))
		r = -EINVAL;
	else if (!in.file && (r = may_send(&in)) < 0)
		;
	else if (!out.file && (r = lind_call_plain(SYS_fcntl, out.fd.cage, out.fd.value, F_GETFD, 0, 0)) < 0)
		;
	else if ((r = transfer(&in, &out, length)) >= 0 && side_give_offset(&in, c->args[2]))
		r = -EFAULT;
	side_give(&in);
	return side_written(c, &out, r);
}

static int64_t may_copy(const struct side *in, const struct side *out, uint64_t *length)
{
	if (!in->file || !out->file)
		return -EXDEV;
	if (S_ISDIR(in->file->node->mode) || S_ISDIR(out->file->node->mode))
		return -EISDIR;
	if (imfs_is_fifo(in->file) || imfs_is_fifo(out->file))
		return -EINVAL;
	if (imfs_may_read(in->file) || imfs_may_write(out->file) || (out->file->flags & O_APPEND))
		return -EBADF;
	if (in->file->node == out->file->node) {
		int64_t from = in->at_pos ? in->file->pos : in->off, to = out->at_pos ? out->file->pos : out->off;
		int64_t left = in->file->node->size > from ? in->file->node->size - from : 0;

		/* Only what there is: nothing overlaps behind the end, and what the copy adds there is not
		 * copied in turn. */
		*length = left < (int64_t)*length ? (uint64_t)left : *length;
		if (from < to + (int64_t)*length && to < from + (int64_t)*length)
			return -EINVAL;
	}
	return 0;
}

int64_t on_copy_file_range(const struct lind_call *c)
{
	uint64_t length = c->args[4].value < MAX_TRANSFER ? c->args[4].value : MAX_TRANSFER;
	struct side in, out;
	int64_t r;

	if ((r = side_take(c, 0, c->args[1], &in)))
		return r;
	if ((r = side_take(c, 2, c->args[3], &out)) || (!in.file && !out.file)) {
		side_give(&in);
		return r ? r : lind_forward(c);
	}
	if (lind_arg32(c, 5))
		r = -EINVAL;
	else if (!(r = may_copy(&in, &out, &length)) && (r = transfer(&in, &out, length)) >= 0 &&
	    (side_give_offset(&in, c->args[1]) || side_give_offset(&out, c->args[3])))
		r = -EFAULT;
	side_give(&in);
	return side_written(c, &out, r);
}
