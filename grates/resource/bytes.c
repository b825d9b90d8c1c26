/* Bytes read and written, but for messages: which calls carry them, and how much of each call
 * counts. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lind/transfer.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include "bytes.h"
#include "limits.h"
#include "messages.h"
#include "use.h"

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

static int64_t on_fallocate(const struct lind_call *call)
{
	int mode = (int)call->args[1].value;

	return use_of_kind(call, true, OF_FILE, mode & ~FALLOC_FL_KEEP_SIZE ? 0 : call->args[3].value);
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
static int64_t on_vmsplice(const struct lind_call *call)
{
	(void)call;
	return -ENOSYS;
}

size_t byte_handlers(struct lind_handler *to)
{
	static const struct lind_handler reads[] = {
		{ SYS_read, on_read }, { SYS_pread64, on_read }, { SYS_recvfrom, on_read }, { SYS_readv, on_readv }, { SYS_preadv, on_readv },
		{ SYS_preadv2, on_readv }, { SYS_msgrcv, on_msgrcv }, { SYS_mq_timedreceive, on_mq_receive },
	}, writes[] = {
		{ SYS_write, on_write }, { SYS_pwrite64, on_write }, { SYS_sendto, on_write }, { SYS_writev, on_writev },
		{ SYS_pwritev, on_writev }, { SYS_pwritev2, on_writev },
		{ SYS_fallocate, on_fallocate }, { SYS_setxattr, on_setxattr }, { SYS_lsetxattr, on_setxattr },
		{ SYS_fsetxattr, on_setxattr }, { SYS_msgsnd, on_msgsnd }, { SYS_mq_timedsend, on_msgsnd },
	}, sends[] = {
		{ SYS_sendmsg, on_message }, { SYS_sendmmsg, on_messages },
	}, receives[] = {
		{ SYS_recvmsg, on_message }, { SYS_recvmmsg, on_messages },
	}, both[] = {
		{ SYS_sendfile, on_sendfile }, { SYS_splice, on_splice }, { SYS_tee, on_tee }, { SYS_copy_file_range, on_splice },
		{ SYS_mmap, on_mmap }, { SYS_vmsplice, on_vmsplice },
	}, changes[] = {
		{ SYS_close, on_change }, { SYS_dup2, on_change }, { SYS_dup3, on_change }, { SYS_close_range, on_change },
	};
	bool read = any(READ, false), write = any(WRITE, false);
	size_t n = 0;
#define ALL(list) (memcpy(to + n, list, sizeof list), n += sizeof list / sizeof *list)

	if (read)
		ALL(reads);
	if (write)
		ALL(writes);
	if (write || limited(FILES))
		ALL(sends);
	if (read || limited(FILES))
		ALL(receives);
	if (read || write)
		ALL(both);
	if (any(READ, true) || any(WRITE, true))
		ALL(changes);
	return n;
}
