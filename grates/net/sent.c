/* Messages that are sent: their addresses, and what comes with them. */
#include <errno.h>
#include <string.h>
#include "control.h"
#include "net.h"

static int64_t look_at_control(struct client *c, const struct lind_call *call, const struct msghdr *m, bool *has_fds)
{
	struct control *k;
	struct address from;

	for (size_t at = 0; (k = control_at(m, at)); at = control_next(at, k)) {
		/* The port is its socket's, and that may be bound while we look. */
		if (has_names && control_source(k, &from) && is_resolvers_host(&from))
			return deny(c, call, "", "a resolver's address", "sendmsg");
		if (!control_is_harmless(k))
			return deny(c, call, "", "changes the route of packets",
			    "sendmsg with a control message %d of level %d", k->type, k->level);
		*has_fds |= k->level == SOL_SOCKET && k->type == SCM_RIGHTS;
	}
	return 0;
}

static int64_t send_message(struct client *c, const struct lind_call *call, struct lind_message *m)
{
	uint64_t flags = call->args[2].value;
	struct lind_call own = *call;
	struct lind_arg pinned = { 0, 0 };
	struct socket_kind kind;
	struct sockaddr_storage s;
	struct address a;
	bool has_fds = false;
	int64_t r;

	if ((r = look_at_control(c, call, &m->own, &has_fds)) < 0)
		return r;
	if (has_fds && has_names) {
		taint_begin(c);
		streams_drop(c, -1);
	}
	if (m->own.msg_name && !m->own.msg_namelen)
		m->own.msg_name = NULL;
	if (m->own.msg_name) {
		struct sockaddr *name = m->own.msg_name;

		if ((r = stream_takes_no_name(call)) < 0)
			return r;
		if (m->own.msg_namelen >= sizeof(struct sockaddr_in) && name->sa_family == AF_UNSPEC)
			name->sa_family = AF_INET;
		if ((r = address_parse(m->name, m->own.msg_namelen, true, &a)) >= 0)
			r = pin(call, &pinned);
		if (r < 0)
			goto sent;
		if (!socket_kind(call->target, pinned, &kind))
			r = -ENOTSOCK;
		else if (a.family == AF_UNSPEC)
			r = -EINVAL;
		else if (a.family == AF_UNIX) {
			/* Descriptors in messages are numbers of whose socket it is. */
			r = unix_send(c, call, call->args[0], m, &a);
			goto sent;
		} else if (has_fds)
			/* They would not arrive, and the number that they go through may be another socket's by then. */
			r = -EINVAL;
		else
			r = flags & MSG_FASTOPEN
			    ? judge(c, call, CONNECT, kind.proto, &a)
			    : judge_sent(c, call, kind.proto, &a, m->piece.iov_base, m->piece.iov_len);
		if (r < 0)
			goto sent;
		m->own.msg_namelen = address_write(&a, &s);
		memcpy(m->name, &s, m->own.msg_namelen);
		if (flags & MSG_FASTOPEN)
			stream_connected(c, (int)call->args[0].value, kind.proto, &a);
		own.args[0] = pinned;
	}
	r = lind_message_pass(m, &own, flags);
	if (m->own.msg_name && flags & MSG_FASTOPEN && r < 0 && r != -EINPROGRESS)
		streams_drop(c, (int)call->args[0].value);
sent:
	if (pinned.cage)
		unpin(pinned);
	if (has_fds && has_names)
		taint_end(c);
	return r;
}

static int64_t on_sendmsg(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	struct lind_message m;
	int64_t r;

	if (!c)
		return -EACCES;
	if ((r = lind_message_sent(&m, call->args[1])) < 0)
		return r;
	r = send_message(c, call, &m);
	lind_message_free(&m);
	return r;
}

static int64_t on_sendmmsg(const struct lind_call *call)
{
	return lind_message_each(call, on_sendmsg);
}

LIND_HANDLE(answers, sendmsg, on_sendmsg);
LIND_HANDLE(answers, sendmmsg, on_sendmmsg);
