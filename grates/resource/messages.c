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

/* Waits for a message as this call does, and takes none: for no byte of it there is room. -E2BIG
 * when there is one; 0: it was empty, and was taken. */
static int64_t await_message(const struct lind_call *call)
{
	struct lind_call probe = *call;

	probe.args[2].value = 0;
	probe.args[4].value &= ~(uint64_t)MSG_NOERROR;
	return lind_forward(&probe);
}

static int64_t on_msgrcv(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	struct lind_call at_once = *call;
	struct use u;
	int64_t n, r;

	if (!c)
		return lind_forward(call);
	use_begin(&u, c, call);
	use_add(&u, false, OF_PIPE);
	if (!u.count || !call->args[2].value || call->args[4].value & IPC_NOWAIT)
		return use_limited_call(&u, 2, 0);
	at_once.args[4].value |= IPC_NOWAIT;
	do {
		if ((r = await_message(call)) != -E2BIG)
			return r;
		if ((n = use_admit(&u, call->args[2].value, 0)) < 0)
			return n;
		at_once.args[2].value = (uint64_t)n;
		r = use_after(&u, (uint64_t)n, lind_forward(&at_once));
	} while (r == -ENOMSG);
	/* It was there when the message was. */
	return r == -EINVAL ? -EIDRM : r;
}

/* How long mq_timedreceive may wait, in milliseconds; -1: without end. */
static int64_t time_left(struct lind_arg until)
{
	struct {
		int64_t seconds, nanos;
	} at;
	struct timespec t;
	int64_t left;

	if (!until.value)
		return -1;
	/* The call itself reports any mistake. */
	if (lind_read(until, &at, sizeof at) || clock_gettime(CLOCK_REALTIME, &t))
		return 0;
	left = at.seconds - t.tv_sec;
	left = left > INT_MAX / 1000 - 1 ? INT_MAX : left < 0 ? 0 : left * 1000 + (at.nanos - t.tv_nsec) / 1000000 + 1;
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

static int64_t on_mq_receive(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	uint64_t length = call->args[2].value;
	struct use u;
	int64_t n;

	if (!c)
		return lind_forward(call);
	use_begin(&u, c, call);
	use_add(&u, false, OF_PIPE);
	if (!u.count || !length)
		return lind_forward(call);
	/* When the time is over the call itself says so. */
	if (!(flags_of(call, call->args[0]) & O_NONBLOCK) && (n = use_wait(&u, time_left(call->args[4]))) < 0)
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
LIND_HANDLE_OF(reads, alters, msgrcv, on_msgrcv);
LIND_HANDLE_OF(reads, alters, mq_timedreceive, on_mq_receive);
