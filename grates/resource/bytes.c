/* Bytes read and written, but for messages: which calls carry them, and how much of each call
 * counts. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lind/grate.h>
#include <lind/transfer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "bytes.h"
#include "limits.h"
#include "use.h"

LIND_HANDLE_OF(writes, alters, fallocate);
/* Its effect depends on the descriptor: readv and writev do the same. */
LIND_HANDLE_OF(transfers, answers, vmsplice);

static int64_t plain(const struct lind_call *call, bool writes)
{
	struct client *c = lind_client(call->target);
	struct use u;

	if (!c)
		return lind_forward(call);
	use_begin(&u, c, call);
	use_add_fd(&u, writes, call->args[0]);
	/* A write that fits a pipe is made as a whole. */
	if (writes && call->args[2].value <= PIPE_BUF && !u.whole)
		u.whole = u.count && u.of[u.count - 1] == WRITE_PIPE;
	return use_limited_call(&u, 2, call->nr == SYS_recvfrom ? call->args[3].value : 0);
}

static int64_t on_read(const struct lind_call *call)
{
	return plain(call, false);
}

static int64_t on_write(const struct lind_call *call)
{
	return plain(call, true);
}

/* Through a copy: the pieces could change between the look at them and the call. */
static int64_t pieces(const struct lind_call *call, bool writes)
{
	struct client *c = lind_client(call->target);
	struct lind_call own = *call;
	struct lind_vector v;
	struct iovec one;
	struct use u;
	int64_t n, r;

	if (!c)
		return lind_forward(call);
	use_begin(&u, c, call);
	use_add_fd(&u, writes, call->args[0]);
	if (!u.count || call->args[2].value > 1024)
		return lind_forward(call);
	if ((r = lind_vector_read(&v, call->args[1], call->args[2].value)) < 0)
		return r;
	if (!v.total) {
		lind_vector_free(&v);
		return lind_forward(call);
	}
	n = use_admit(&u, v.total, 0);
	one = (struct iovec){ n > 0 ? malloc((size_t)n) : NULL, n > 0 ? (size_t)n : 0 };
	if (n < 0)
		r = n;
	else if (!one.iov_base || (writes && lind_vector_gather(&v, one.iov_base, one.iov_len) < 0))
		r = use_after(&u, (uint64_t)n, one.iov_base ? -EFAULT : -ENOMEM);
	else {
		own.args[1] = lind_mine(&one);
		own.args[2].value = 1;
		r = use_after(&u, (uint64_t)n, lind_forward(&own));
		if (r > 0 && !writes && lind_vector_scatter(&v, one.iov_base, (size_t)r) < 0)
			r = -EFAULT;
	}
	free(one.iov_base);
	lind_vector_free(&v);
	return r;
}

static int64_t on_readv(const struct lind_call *call)
{
	return pieces(call, false);
}

static int64_t on_writev(const struct lind_call *call)
{
	return pieces(call, true);
}

/* From one descriptor to another: which arguments they and the length are. */
static int64_t between(const struct lind_call *call, int in, int out, int length)
{
	struct client *c = lind_client(call->target);
	struct use u;

	if (!c)
		return lind_forward(call);
	use_begin(&u, c, call);
	use_add_fd(&u, false, call->args[in]);
	use_add_fd(&u, true, call->args[out]);
	/* While such a call waits, the bytes that it holds are those that it will carry. */
	u.waits = u.whole = false;
	return use_limited_call(&u, length, 0);
}

static int64_t on_sendfile(const struct lind_call *call)
{
	return between(call, 1, 0, 3);
}

static int64_t on_splice(const struct lind_call *call)
{
	return between(call, 0, 2, 4);
}

static int64_t on_tee(const struct lind_call *call)
{
	return between(call, 0, 1, 2);
}

static int64_t on_fallocate(const struct lind_call *call, int fd, int mode, off_t offset, off_t length)
{
	(void)fd, (void)offset;
	return use_of_kind(call, true, OF_FILE, mode & ~FALLOC_FL_KEEP_SIZE ? 0 : (uint64_t)length);
}

static int64_t on_setxattr(const struct lind_call *call)
{
	return use_of_kind(call, true, OF_FILE, call->args[3].value);
}

int64_t map_file(struct client *c, const struct lind_call *call, lind_handle_fn *map)
{
	uint64_t n = call->args[1].value;
	int64_t got, r;
	struct use u;

	if (call->args[3].value & MAP_ANONYMOUS || !n)
		return map(call);
	use_begin(&u, c, call);
	use_add_fd(&u, false, call->args[4]);
	if (call->args[3].value & MAP_SHARED && (flags_of(call, call->args[4]) & O_ACCMODE) != O_RDONLY)
		use_add_fd(&u, true, call->args[4]);
	u.waits = false;
	u.whole = true;
	u.directions[1] = true;
	if (!u.count)
		return map(call);
	if ((got = use_admit(&u, n, 0)) < 0)
		return got;
	r = map(call);
	use_carried(&u, (uint64_t)got, r < 0 && r >= -4095 ? 0 : (uint64_t)got);
	return r;
}

static int64_t on_mmap(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);

	return c ? map_file(c, call, lind_forward) : lind_forward(call);
}

/* Before and after: a call that sees the same number at its beginning and end met none of these. */
static int64_t on_change(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	int64_t r;

	if (!c)
		return lind_forward(call);
	__atomic_fetch_add(&c->changes, 1, __ATOMIC_SEQ_CST);
	r = lind_forward(call);
	__atomic_fetch_add(&c->changes, 1, __ATOMIC_SEQ_CST);
	return r;
}

static bool any(enum what from, bool classes)
{
	for (enum what what = from + classes; what < from + ANY_CLASS; what++)
		if (counted(what) || paced(what))
			return true;
	return false;
}

/* Both ways at once by what its descriptor is for: readv and writev are the same. */
static int64_t on_vmsplice(const struct lind_call *call, int fd, struct lind_arg pieces, size_t count, int flags)
{
	(void)call, (void)fd, (void)pieces, (void)count, (void)flags;
	return -ENOSYS;
}

LIND_HANDLE_OF(reads, alters, read, on_read);
LIND_HANDLE_OF(reads, alters, pread64, on_read);
LIND_HANDLE_OF(reads, alters, recvfrom, on_read);
LIND_HANDLE_OF(reads, alters, readv, on_readv);
LIND_HANDLE_OF(reads, alters, preadv, on_readv);
LIND_HANDLE_OF(reads, alters, preadv2, on_readv);
LIND_HANDLE_OF(writes, alters, write, on_write);
LIND_HANDLE_OF(writes, alters, pwrite64, on_write);
LIND_HANDLE_OF(writes, alters, sendto, on_write);
LIND_HANDLE_OF(writes, alters, writev, on_writev);
LIND_HANDLE_OF(writes, alters, pwritev, on_writev);
LIND_HANDLE_OF(writes, alters, pwritev2, on_writev);
LIND_HANDLE_OF(writes, alters, setxattr, on_setxattr);
LIND_HANDLE_OF(writes, alters, lsetxattr, on_setxattr);
LIND_HANDLE_OF(writes, alters, fsetxattr, on_setxattr);
LIND_HANDLE_OF(transfers, alters, sendfile, on_sendfile);
LIND_HANDLE_OF(transfers, alters, splice, on_splice);
LIND_HANDLE_OF(transfers, alters, tee, on_tee);
LIND_HANDLE_OF(transfers, alters, copy_file_range, on_splice);
LIND_HANDLE_OF(transfers, alters, mmap, on_mmap);
LIND_HANDLE_OF(numbers, observes, close, on_change);
LIND_HANDLE_OF(numbers, observes, dup2, on_change);
LIND_HANDLE_OF(numbers, observes, dup3, on_change);
LIND_HANDLE_OF(numbers, observes, close_range, on_change);

void bytes_begin(void)
{
	bool read = any(READ, false), write = any(WRITE, false);

	if (read)
		lind_grate_part(reads);
	if (write)
		lind_grate_part(writes);
	if (write || limited(FILES))
		lind_grate_part(sends);
	if (read || limited(FILES))
		lind_grate_part(receives);
	if (read || write)
		lind_grate_part(transfers);
	if (any(READ, true) || any(WRITE, true))
		lind_grate_part(numbers);
}
