/* Messages that come: their senders, the sockets they bring, and answers of resolvers in them. */
#include <errno.h>
#include <fcntl.h>
#include <lind/rules.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "control.h"
#include "net.h"

/* Datagrams that are thrown away before a call ends without one. */
#define MOST_UNWANTED 1000

/* Gives the client the descriptors of one control message, up to the first that may not be had;
 * the others are closed, as the kernel does with what finds no number. */
static bool hand_fds(struct client *c, const struct lind_call *call, struct control *k, bool cloexec)
{
	size_t count = (k->length - sizeof *k) / sizeof(int), kept = 0, i;
	int *fds = (int *)k->data;
	char why[200];

	for (i = 0; i < count && kept == i; i++) {
		struct lind_arg own = { (uint64_t)fds[i], lind_self() };
		int64_t given;

		if (!received_fits(own, why, sizeof why)) {
			deny(c, call, "", "no rule allows it", "recvmsg of a socket %s", why);
			break;
		}
		if ((given = hand_over(call, fds[i], cloexec)) >= 0)
			fds[kept++] = (int)given;
	}
	for (; i < count; i++)
		close(fds[i]);
	k->length = sizeof *k + kept * sizeof(int);
	return kept == count;
}

/* A message that may bring descriptors comes to us first, and without waiting: that is the
 * client's. */
static int64_t receive_here(struct client *c, const struct lind_call *call, struct lind_message *m, uint64_t flags)
{
	struct lind_call here = *call;
	struct lind_arg pinned;
	struct msghdr fresh = m->own;
	struct control *k;
	bool waits;
	int64_t r;

	if ((r = pin(call, &pinned)) < 0)
		return r;
	waits = !(flags & MSG_DONTWAIT) && !(fcntl((int)pinned.value, F_GETFL) & O_NONBLOCK);
	here.args[0] = pinned;
	here.target = lind_self();
	while ((r = lind_message_pass(m, &here, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC)) == -EAGAIN && waits &&
	    !(flags & (MSG_ERRQUEUE | MSG_OOB)) && (r = wait_readable(call, pinned)) == 0)
		m->own = fresh;
	unpin(pinned);
	for (size_t at = 0; r >= 0 && (k = control_at(&m->own, at));) {
		size_t after = control_next(at, k);

		if (k->level == SOL_SOCKET && k->type == SCM_RIGHTS && !hand_fds(c, call, k, flags & MSG_CMSG_CLOEXEC))
			m->own.msg_flags |= MSG_CTRUNC;
		at = after;
	}
	m->own.msg_flags &= ~MSG_CMSG_CLOEXEC;
	return r;
}

/* Whether what was received has a sender that it may not come from. */
static bool unwanted(
    struct client *c, const struct lind_call *call, const struct lind_message *m, int64_t r, uint64_t flags)
{
	struct address from;

	/* The queue of errors has what the client sent. */
	if (r < 0 || !m->own.msg_namelen || m->own.msg_namelen > sizeof m->name ||
	    (flags | (uint32_t)m->own.msg_flags) & MSG_ERRQUEUE)
		return false;
	return address_parse(m->name, m->own.msg_namelen, false, &from) >= 0 &&
	    (from.family == AF_INET || from.family == AF_INET6) && !datagram_fits(c, call, &from);
}

/* Receives what may come. A sender without end does not keep the client in here for ever. */
static int64_t receive_wanted(struct client *c, const struct lind_call *call, struct lind_message *m, uint64_t flags)
{
	struct msghdr fresh = m->own;
	int64_t r;

	for (int i = 0; i < MOST_UNWANTED; i++) {
		r = m->own.msg_control ? receive_here(c, call, m, flags) : lind_message_pass(m, call, flags);
		if (!unwanted(c, call, m, r, flags))
			return r;
		if (flags & MSG_PEEK)
			datagram_drop(call);
		memset(m->piece.iov_base, 0, m->piece.iov_len);
		memset(m->name, 0, sizeof m->name);
		m->own = fresh;
	}
	return flags & MSG_DONTWAIT ? -EAGAIN : -EINTR;
}

/* Receives into `m`: looks at the message before the client gets it. `fd` is the client's number
 * of the file that the call is about. */
static int64_t receive(struct client *c, const struct lind_call *call, int fd, struct lind_message *m, uint64_t flags)
{
	uint64_t before = 0;
	bool stream;
	struct address from;
	int64_t r;

	/* Ask for the sender's address, whether the client does or not. */
	m->own.msg_name = m->name;
	m->own.msg_namelen = sizeof m->name;
	stream = has_names && stream_begin(c, fd, &before);
	r = receive_wanted(c, call, m, flags);
	/* Only datagrams come with their sender's address. */
	if (stream && r >= 0 && m->own.msg_namelen) {
		streams_drop(c, fd);
		stream = false;
	}
	if (stream) {
		/* Looking ahead takes nothing; what is thrown away is not seen. */
		if (flags & MSG_TRUNC)
			streams_drop(c, fd);
		stream_read(c, fd, before, m->piece.iov_base, r < 0 || flags & (MSG_PEEK | MSG_OOB) ? 0 : (size_t)r);
	}
	/* The queue of errors has what the client sent, under the name of whom it was sent to. */
	if (has_names && r > 0 && !stream && !((flags | (uint32_t)m->own.msg_flags) & MSG_ERRQUEUE) &&
	    m->own.msg_namelen && m->own.msg_namelen <= sizeof m->name &&
	    address_parse(m->name, m->own.msg_namelen, false, &from) >= 0 && from.family != AF_UNIX && !from.own &&
	    is_resolver(&from))
		names_learn(m->piece.iov_base, (uint64_t)r < m->piece.iov_len ? (size_t)r : m->piece.iov_len);
	return r;
}

/* A call that reads; `fd` is as for `receive`. */
typedef int64_t read_fn(struct client *c, const struct lind_call *call, int fd);

/* The call has to read from the file that was looked at: where threads or a parent may change
 * the number, it uses a descriptor of ours. */
static int64_t on_one_file(const struct lind_call *call, read_fn *act)
{
	struct client *c = lind_client(call->target);
	struct lind_call own = *call;
	int64_t r;

	if (!c)
		return -EACCES;
	if (!c->below && !__atomic_load_n(&c->threads, __ATOMIC_ACQUIRE))
		return act(c, call, (int)call->args[0].value);
	if ((r = pin(call, &own.args[0])) < 0)
		return r;
	r = act(c, &own, (int)call->args[0].value);
	unpin(own.args[0]);
	return r;
}

static int64_t receive_message(struct client *c, const struct lind_call *call, int fd)
{
	uint64_t flags = call->args[2].value;
	struct lind_message m;
	int64_t r;

	if ((r = lind_message_room(&m, call->args[1])) < 0)
		return r;
	r = receive(c, call, fd, &m, flags);
	if (r >= 0)
		address_unmark(m.name, m.own.msg_namelen < sizeof m.name ? m.own.msg_namelen : sizeof m.name);
	r = lind_message_give(&m, r, flags);
	lind_message_free(&m);
	return r;
}

static int64_t on_recvmsg(const struct lind_call *call)
{
	return on_one_file(call, receive_message);
}

static int64_t on_recvmmsg(const struct lind_call *call)
{
	return lind_message_each(call, on_recvmsg);
}

LIND_HANDLE(alters, recvmsg, on_recvmsg);
LIND_HANDLE(alters, recvmmsg, on_recvmmsg);

/* As a message of these pieces of the client's. */
static int64_t as_message(struct client *c, const struct lind_call *call, int fd, struct lind_vector *where,
    uint64_t flags, struct lind_message *m)
{
	struct lind_call own = {
		.nr = SYS_recvmsg, .caller = call->caller, .target = call->target, .args = { call->args[0] }
	};
	int64_t r;

	memset(m, 0, sizeof *m);
	m->where = *where;
	m->piece = (struct iovec){ malloc(where->total ? where->total : 1), where->total };
	if (!m->piece.iov_base)
		return -ENOMEM;
	m->own.msg_iov = &m->piece;
	m->own.msg_iovlen = 1;
	r = receive(c, &own, fd, m, flags);
	if (r > 0 &&
	    lind_vector_scatter(where, m->piece.iov_base, (uint64_t)r < where->total ? (size_t)r : where->total) < 0)
		r = -EFAULT;
	return r;
}

static int64_t one_piece(const struct lind_call *call, struct iovec *piece, struct lind_vector *where)
{
	uint64_t length = call->args[2].value;

	*piece = (struct iovec){ (void *)(uintptr_t)call->args[1].value,
		length > LIND_TRANSFER_MAX ? LIND_TRANSFER_MAX : (size_t)length };
	*where = (struct lind_vector){ piece, 1, call->args[1].cage, piece->iov_len };
	return 0;
}

static int64_t receive_from(struct client *c, const struct lind_call *call, int fd)
{
	struct lind_vector where;
	struct lind_message m;
	struct iovec piece;
	uint32_t room = 0, length;
	int64_t r;

	if (!has_names && !is_datagrams(call))
		return lind_forward(call);
	if (call->args[4].value && (r = lind_read(call->args[5], &room, sizeof room)) < 0)
		return r;
	if (room > INT32_MAX)
		return -EINVAL;
	one_piece(call, &piece, &where);
	r = as_message(c, call, fd, &where, call->args[3].value, &m);
	length = m.own.msg_name && r >= 0 ? m.own.msg_namelen : 0;
	address_unmark(m.name, length < sizeof m.name ? length : sizeof m.name);
	if (r >= 0 && call->args[4].value &&
	    (lind_write(call->args[4], m.name, room < length ? room : length) < 0 ||
		lind_write(call->args[5], &length, sizeof length) < 0))
		r = -EFAULT;
	free(m.piece.iov_base);
	return r;
}

static int64_t on_recvfrom(const struct lind_call *call)
{
	return on_one_file(call, receive_from);
}

/* read and readv of a datagram socket say not who sent it: they are made as messages too. */
static int64_t read_data(struct client *c, const struct lind_call *call, int fd)
{
	struct lind_vector where;
	struct lind_message m;
	struct socket_kind kind;
	struct iovec piece;
	int64_t r;

	if (!is_datagrams(call) &&
	    (!has_names || !socket_kind(call->target, call->args[0], &kind) || kind.proto != TCP))
		return lind_forward(call);
	if (call->nr == SYS_preadv2 && (call->args[5].value || call->args[3].value != UINT64_MAX)) {
		/* As no message can be asked for. */
		if (is_datagrams(call))
			return -EOPNOTSUPP;
		streams_drop(c, fd);
		return lind_forward(call);
	}
	if (call->nr == SYS_read)
		one_piece(call, &piece, &where);
	else if ((r = lind_vector_read(&where, call->args[1], call->args[2].value)) < 0)
		return r;
	r = as_message(c, call, fd, &where, 0, &m);
	free(m.piece.iov_base);
	if (call->nr != SYS_read)
		lind_vector_free(&where);
	return r;
}

static int64_t on_read(const struct lind_call *call)
{
	return call->args[2].value ? on_one_file(call, read_data) : lind_forward(call);
}

/* Numbers are made, copied or given to others: what is being followed at the numbers named is
 * not any more. */
static int64_t on_change(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	int64_t r;

	if (!c)
		return lind_forward(call);
	taint_begin(c);
	streams_drop(c, call->nr == SYS_close_range ? -1 : (int)call->args[0].value);
	if (call->nr == SYS_dup2 || call->nr == SYS_dup3)
		streams_drop(c, (int)call->args[1].value);
	r = lind_forward(call);
	taint_end(c);
	return r;
}

/* Data that comes this way does not name its sender. */
static int64_t splice_data(struct client *c, const struct lind_call *call, int fd)
{
	if (is_datagrams(call))
		return -EINVAL;
	if (has_names)
		streams_drop(c, fd);
	return lind_forward(call);
}

static int64_t on_splice(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	int64_t r;

	if (!c)
		return -EACCES;
	taint_begin(c);
	r = on_one_file(call, splice_data);
	taint_end(c);
	return r;
}

int64_t names_fcntl(const struct lind_call *call)
{
	int command = (int)call->args[1].value;

	return command == F_DUPFD || command == F_DUPFD_CLOEXEC ? on_change(call) : lind_forward(call);
}

/* A child has all numbers of its parent, a thread may change them. */
static int64_t on_birth(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	int64_t r;

	if (c && call->args[0].value & CLONE_FILES)
		__atomic_store_n(&c->threads, true, __ATOMIC_RELEASE);
	if (!c || call->args[0].value & CLONE_FILES)
		return lind_forward(call);
	taint_begin(c);
	streams_drop(c, -1);
	r = lind_forward(call);
	taint_end(c);
	return r;
}

/* Whether there are datagrams, or names are followed. */
static bool watched = true;

void watch_data(bool watches)
{
	__atomic_store_n(&watched, watches, __ATOMIC_SEQ_CST);
}

/* A call on data that comes, or on numbers. */
static int64_t on_data(const struct lind_call *call)
{
	if (!__atomic_load_n(&watched, __ATOMIC_RELAXED))
		return lind_forward(call);
	switch (call->nr) {
	case SYS_recvfrom:
		return on_recvfrom(call);
	case SYS_read:
	case SYS_readv:
	case SYS_preadv2:
		return on_read(call);
	case SYS_splice:
		return on_splice(call);
	default:
		return has_names ? on_change(call) : lind_forward(call);
	}
}

LIND_FILTER(on_data)
{
	return __atomic_load_n(&watched, __ATOMIC_RELAXED) ? LIND_ASK : LIND_PASS;
}

/* Without datagrams nobody needs these. */
LIND_HANDLE(alters, recvfrom, on_data);
LIND_HANDLE(alters, read, on_data);
LIND_HANDLE(alters, readv, on_data);
LIND_HANDLE(alters, preadv2, on_data);
LIND_HANDLE(answers, splice, on_data);
LIND_HANDLE(observes, clone, on_birth);

/* Nor these without names. */
LIND_HANDLE(observes, dup, on_data);
LIND_HANDLE(observes, dup2, on_data);
LIND_HANDLE(observes, dup3, on_data);
LIND_HANDLE(observes, close, on_data);
LIND_HANDLE(observes, close_range, on_data);
LIND_HANDLE(observes, tee, on_data);
LIND_HANDLE(observes, sendfile, on_data);

static void without(const uint32_t *numbers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		lind_grate_without(numbers[i]);
}

void messages_choose(void)
{
	static const uint32_t datagrams[] = { SYS_recvfrom, SYS_read, SYS_readv, SYS_preadv2, SYS_splice, SYS_clone };
	static const uint32_t names[] = { SYS_dup, SYS_dup2, SYS_dup3, SYS_close, SYS_close_range, SYS_tee,
		SYS_sendfile };

	/* Later rules may need them all. */
	if (lind_is_live())
		return;
	if (!has_datagrams())
		without(datagrams, sizeof datagrams / sizeof *datagrams);
	if (!has_names)
		without(names, sizeof names / sizeof *names);
}
