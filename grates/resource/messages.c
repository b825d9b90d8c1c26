/* Messages: of sockets, of System V's queues and of POSIX's. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lind/grate.h>
#include <lind/transfer.h>
#include <stdlib.h>
#include <sys/msg.h>
#include <time.h>
#include "files.h"
#include "limits.h"
#include "use.h"

LIND_HANDLE_OF(reads, alters, msgrcv);
LIND_HANDLE_OF(reads, alters, mq_timedreceive);

#define MOST_MESSAGE 65536u /* of a POSIX queue: longer than the kernel has any */

static int64_t message(struct use *u, struct lind_message *m, bool writes, uint64_t flags)
{
	uint64_t files = writes && limited(FILES) ? files_in(&m->own) : 0;
	int64_t n = 0, r;

	if (files && (r = files_send(u->c, files)) < 0)
		return r;
	if (u->count && m->piece.iov_len) {
		if ((n = use_admit(u, m->piece.iov_len, flags)) < 0) {
			if (files)
				files_sent(u->c, files, false);
			return n;
		}
		m->piece.iov_len = (size_t)n;
	}
	r = lind_message_pass(m, u->call, flags);
	if (files)
		files_sent(u->c, files, r >= 0);
	if (n)
		/* MSG_TRUNC tells more than was given. */
		use_after(u, (uint64_t)n, r > n ? n : r);
	if (!writes && r >= 0) {
		if (limited(FILES))
			files_received(u->c, &m->own);
		r = lind_message_give(m, r, flags);
	}
	return r;
}

static int64_t on_message(const struct lind_call *call)
{
	bool writes = call->nr == SYS_sendmsg;
	struct client *c = lind_client(call->target);
	struct lind_message m;
	struct use u;
	int64_t r;

	if (!c)
		return lind_forward(call);
	use_begin(&u, c, call);
	use_add_fd(&u, writes, call->args[0]);
	r = writes ? lind_message_sent(&m, call->args[1]) : lind_message_room(&m, call->args[1]);
	if (r < 0)
		return r;
	r = message(&u, &m, writes, call->args[2].value);
	lind_message_free(&m);
	return r;
}

static int64_t on_messages(const struct lind_call *call)
{
	return lind_message_each(call, on_message);
}

static int64_t on_msgsnd(const struct lind_call *call)
{
	return use_of_kind(call, true, OF_PIPE, call->args[2].value);
}

static int64_t on_msgrcv(const struct lind_call *call, int id, struct lind_arg msg, size_t size, int kind, int flags)
{
	struct client *c = lind_client(call->target);
	struct use u;
	int64_t n, r;

	if (!c)
		return lind_forward(call);
	use_begin(&u, c, call);
	use_add(&u, false, OF_PIPE);
	if (!u.count || !size || flags & IPC_NOWAIT)
		return use_limited_call(&u, 2, 0);
	do {
		/* Without room for a byte it waits for a message, and takes none that is not empty. */
		if ((r = lind_forward_msgrcv(call, id, msg, 0, kind, flags & ~MSG_NOERROR)) != -E2BIG)
			return r;
		if ((n = use_admit(&u, size, 0)) < 0)
			return n;
		r = use_after(&u, (uint64_t)n, lind_forward_msgrcv(call, id, msg, (size_t)n, kind, flags | IPC_NOWAIT));
	} while (r == -ENOMSG);
	/* It was there when the message was. */
	return r == -EINVAL ? -EIDRM : r;
}

/* How long mq_timedreceive may wait, in milliseconds; -1: without end. */
static int64_t time_left(const struct timespec *until)
{
	struct timespec t;
	int64_t left;

	if (!until)
		return -1;
	clock_gettime(CLOCK_REALTIME, &t);
	left = until->tv_sec - t.tv_sec;
	left = left > INT_MAX / 1000 - 1 ? INT_MAX
	    : left < 0                   ? 0
					 : left * 1000 + ((int64_t)until->tv_nsec - t.tv_nsec) / 1000000 + 1;
	return left < 0 ? 0 : left;
}

/* A message may be shorter than the room for it, which has to be enough for the longest: it is
 * taken whole, and cut if less is left. */
static int64_t receive_cut(const struct use *u, uint64_t admitted)
{
	struct lind_call own = *u->call;
	char *message = malloc(MOST_MESSAGE);
	int64_t r;

	if (!message)
		return use_after(u, admitted, -ENOMEM);
	own.args[1] = lind_mine(message);
	own.args[2].value = own.args[2].value < MOST_MESSAGE ? own.args[2].value : MOST_MESSAGE;
	r = lind_forward(&own);
	if (r > (int64_t)admitted)
		r = (int64_t)admitted;
	use_after(u, admitted, r);
	if (r > 0 && lind_write(u->call->args[1], message, (size_t)r))
		r = -EFAULT;
	free(message);
	return r;
}

static int64_t on_mq_timedreceive(const struct lind_call *call, int fd, struct lind_arg msg, size_t length,
    struct lind_arg priority, const struct timespec *until)
{
	struct client *c = lind_client(call->target);
	struct use u;
	int64_t n;

	(void)fd, (void)msg, (void)priority;
	if (!c)
		return lind_forward(call);
	use_begin(&u, c, call);
	use_add(&u, false, OF_PIPE);
	if (!u.count || !length)
		return lind_forward(call);
	/* When the time is over the call itself says so. */
	if (!(flags_of(call, call->args[0]) & O_NONBLOCK) && (n = use_wait(&u, time_left(until))) < 0)
		return n;
	if ((n = use_admit(&u, length, 0)) < 0)
		return n;
	return (uint64_t)n < length ? receive_cut(&u, (uint64_t)n) : use_after(&u, (uint64_t)n, lind_forward(call));
}

LIND_HANDLE_OF(sends, alters, sendmsg, on_message);
LIND_HANDLE_OF(sends, alters, sendmmsg, on_messages);
LIND_HANDLE_OF(receives, alters, recvmsg, on_message);
LIND_HANDLE_OF(receives, alters, recvmmsg, on_messages);
LIND_HANDLE_OF(writes, alters, msgsnd, on_msgsnd);
LIND_HANDLE_OF(writes, alters, mq_timedsend, on_msgsnd);
