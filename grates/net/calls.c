/* Calls with an address, and sockets themselves. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include "net.h"

#define IPPROTO_MPTCP_ 262

LIND_HANDLE(answers, socket);
LIND_HANDLE(answers, connect);
LIND_HANDLE(answers, bind);
LIND_HANDLE(answers, listen);
LIND_HANDLE(answers, sendto);

/* The address of a call, which the grate has copied. */
static int64_t address_of(const struct sockaddr *given, socklen_t length, bool out, struct address *a)
{
	static const struct sockaddr none;

	if (length > sizeof(struct sockaddr_storage))
		return -EINVAL;
	return !given && length ? -EFAULT : address_parse(given ? given : &none, length, out, a);
}

/* An address without a family: to UDP one of IPv4, and it goes on as that. */
static int64_t with_family(const struct sockaddr *given, socklen_t length, bool out, struct address *a)
{
	struct sockaddr_in in;
	int64_t r = address_of(given, length, out, a);

	if (r < 0 || a->family != AF_UNSPEC)
		return r;
	if (length < sizeof in)
		return -EINVAL;
	memcpy(&in, given, sizeof in);
	in.sin_family = AF_INET;
	return address_parse(&in, sizeof in, out, a);
}

/* The call with this address, on the file that was looked at. */
static int64_t with_address(const struct lind_call *call, struct lind_arg pinned, int at, const struct address *a)
{
	struct lind_call own = *call;
	struct sockaddr_storage s;
	socklen_t length = address_write(a, &s);

	own.args[0] = pinned;
	own.args[at] = lind_mine(&s);
	own.args[at + 1].value = length;
	return lind_forward(&own);
}

static bool has_icmp_rule(void)
{
	struct rules *held = rules_hold();
	bool has = default_allow;

	for (unsigned i = 0; i < held->count; i++)
		has |= held->of[i].allows && held->of[i].protos & ICMP;
	rules_release(held);
	return has;
}

static int64_t on_socket(const struct lind_call *call, int domain, int type, int protocol)
{
	struct client *c = lind_client(call->target);
	uint64_t before;
	int64_t r;

	if (!c)
		return -EACCES;
	type &= ~(SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (domain != AF_UNIX && domain != AF_INET && domain != AF_INET6)
		return deny(c, call, "", "rules cover only IPv4, IPv6 and unix sockets", "socket of family %d", domain);
	if (domain != AF_UNIX && type != SOCK_STREAM && type != SOCK_DGRAM)
		return deny(c, call, "", "raw sockets are denied", "socket of type %d", type);
	if (domain != AF_UNIX && (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6) && !has_icmp_rule())
		return deny(c, call, "icmp", "no rule allows it", "socket for icmp");
	if (domain != AF_UNIX && protocol && protocol != IPPROTO_TCP && protocol != IPPROTO_UDP &&
	    protocol != IPPROTO_UDPLITE && protocol != IPPROTO_ICMP && protocol != IPPROTO_ICMPV6 &&
	    protocol != IPPROTO_MPTCP_)
		return deny(c, call, "", "rules do not cover it", "socket of protocol %d", protocol);
	before = stream_quiet(c);
	r = lind_forward(call);
	if (has_names && r >= 0)
		stream_made(c, (int)r, before);
	return r;
}

/* The second part of a handler of an address, once the file is certain. */
typedef int64_t judge_fn(struct client *c, const struct lind_call *call, struct lind_arg pinned,
    const struct socket_kind *kind, struct address *a);

static int64_t on_pinned(const struct lind_call *call, struct address *a, judge_fn *act)
{
	struct client *c = lind_client(call->target);
	struct lind_arg pinned;
	struct socket_kind kind;
	int64_t r;

	if (!c)
		return -EACCES;
	if ((r = pin(call, &pinned)) < 0)
		return r;
	r = socket_kind(call->target, pinned, &kind) ? act(c, call, pinned, &kind, a) : -ENOTSOCK;
	unpin(pinned);
	return r;
}

static int64_t connect_to(struct client *c, const struct lind_call *call, struct lind_arg pinned,
    const struct socket_kind *kind, struct address *a)
{
	int fd = (int)call->args[0].value;
	int64_t r;

	if (a->family == AF_UNIX)
		return unix_connect(c, call, pinned, a);
	if (a->family != AF_UNSPEC && kind->domain == AF_UNIX)
		return -EINVAL;
	if (a->family != AF_UNSPEC && !stays_own(CONNECT, kind->proto, a) && only_asks(CONNECT, kind->proto, a))
		return 0;
	/* Without a family it is the end of a connection. */
	if (a->family != AF_UNSPEC && (r = judge(c, call, CONNECT, kind->proto, a)) < 0)
		return r;
	stream_connected(c, fd, kind->proto, a);
	r = with_address(call, pinned, 1, a);
	if (r < 0 && r != -EINPROGRESS)
		streams_drop(c, fd);
	return r;
}

static int64_t on_connect(const struct lind_call *call, int fd, const struct sockaddr *to, socklen_t length)
{
	struct address a;
	int64_t r = address_of(to, length, true, &a);

	(void)fd;
	return r < 0 ? r : on_pinned(call, &a, connect_to);
}

static int64_t bind_to(struct client *c, const struct lind_call *call, struct lind_arg pinned,
    const struct socket_kind *kind, struct address *a)
{
	int64_t r;

	if (a->family == AF_UNIX)
		return unix_bind(c, call, pinned, a);
	r = judge(c, call, BIND, kind->proto, a);
	return r < 0 ? r : with_address(call, pinned, 1, a);
}

static int64_t on_bind(const struct lind_call *call, int fd, const struct sockaddr *to, socklen_t length)
{
	struct address a;
	int64_t r = with_family(to, length, false, &a);

	(void)fd;
	return r < 0 ? r : on_pinned(call, &a, bind_to);
}

/* Binds the file that was looked at. */
static int64_t bind_at(const struct lind_call *call, struct lind_arg pinned, const struct address *a)
{
	struct lind_arg none = { 0, call->target };
	struct sockaddr_storage s;
	socklen_t length = address_write(a, &s);

	return lind_call(
	    SYS_bind, call->target, pinned, lind_mine(&s), (struct lind_arg){ length, call->target }, none, none, none);
}

/* A socket without a name gets one by listening: any address, a free port. */
static int64_t listen_at(struct client *c, const struct lind_call *call, struct lind_arg pinned,
    const struct socket_kind *kind, struct address *a)
{
	struct lind_call own = *call;
	struct address before;
	int64_t r;

	own.args[0] = pinned;
	if (kind->domain == AF_UNIX || !socket_name(call->target, pinned, false, a) || a->own)
		return lind_forward(&own);
	before = *a;
	if (!a->port && stays_own(LISTEN, kind->proto, a)) {
		a->own = true;
		return (r = bind_at(call, pinned, a)) < 0 ? r : lind_forward(&own);
	}
	if ((r = judge(c, call, LISTEN, kind->proto, a)) < 0 || (r = lind_forward(&own)) < 0 || before.port)
		return r;
	/* It had no port: bind may have been quicker than listen, with another address. */
	if (!socket_name(call->target, pinned, false, a) ||
	    (!address_is(a, &before, a->family == AF_INET ? 32 : 128) && !allowed(LISTEN, kind->proto, a))) {
		shutdown((int)pinned.value, SHUT_RDWR);
		return deny(c, call, "", "its address has changed meanwhile", "listen");
	}
	return r;
}

static int64_t on_listen(const struct lind_call *call, int fd, int backlog)
{
	struct address a;

	(void)fd, (void)backlog;
	return on_pinned(call, &a, listen_at);
}

/* Held while a listening socket does not block on our behalf, and while a client says whether
 * one does. It never waits. */
static pthread_mutex_t blocking_lock = PTHREAD_MUTEX_INITIALIZER;

/* The next connection, as a descriptor of ours; -EAGAIN if there is none. `*waits` is whether
 * the client would wait for it. */
static int64_t accept_here(struct lind_arg pinned, struct sockaddr_storage *s, socklen_t *size, bool *waits)
{
	int fd = (int)pinned.value, flags, r;

	pthread_mutex_lock(&blocking_lock);
	flags = fcntl(fd, F_GETFL);
	*waits = !(flags & O_NONBLOCK);
	if (*waits)
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
	r = accept4(fd, (struct sockaddr *)s, size, SOCK_CLOEXEC);
	r = r < 0 ? -errno : r;
	if (*waits)
		fcntl(fd, F_SETFL, flags);
	pthread_mutex_unlock(&blocking_lock);
	return r;
}

static int64_t may_change_blocking(const struct lind_call *call)
{
	uint32_t command = lind_arg32(call, 1);
	int64_t r;

	if (call->nr == SYS_fcntl ? command != F_SETFL : command != FIONBIO)
		return call->nr == SYS_fcntl && has_names ? names_fcntl(call) : lind_forward(call);
	pthread_mutex_lock(&blocking_lock);
	r = lind_forward(call);
	pthread_mutex_unlock(&blocking_lock);
	return r;
}
LIND_HANDLE(alters, fcntl, may_change_blocking);
LIND_HANDLE(observes, ioctl, may_change_blocking);

/* Whether a connection may be had: by its peer, and our own port. */
static bool fits(
    struct client *c, const struct lind_call *call, int fd, const struct sockaddr_storage *s, socklen_t size)
{
	struct lind_arg own = { (uint64_t)fd, lind_self() };
	struct address peer, name;
	struct socket_kind kind;

	if (s->ss_family == AF_UNIX)
		return true;
	if (address_parse(s, size, false, &peer) < 0 || !socket_kind(lind_self(), own, &kind) ||
	    !socket_name(lind_self(), own, false, &name))
		return false;
	peer.port = name.port;
	if (peer.own)
		return true;
	return judge(c, call, ACCEPT, kind.proto, &peer) == 0;
}

/* A connection comes to us first. If it is not allowed, it is closed and the next one waited
 * for: the client never had it. */
static int64_t accept_one(struct client *c, const struct lind_call *call, struct lind_arg pinned,
    const struct socket_kind *kind, struct address *a)
{
	uint32_t flags = call->nr == SYS_accept4 ? lind_arg32(call, 3) : 0, room = 0;
	struct sockaddr_storage s;
	socklen_t size;
	bool waits;
	int64_t r;

	(void)kind;
	(void)a;
	if (flags & ~(uint32_t)(SOCK_CLOEXEC | SOCK_NONBLOCK))
		return -EINVAL;
	if (call->args[1].value && (r = lind_read(call->args[2], &room, sizeof room)) < 0)
		return r;
	if (room > INT32_MAX)
		return -EINVAL;
	for (;;) {
		memset(&s, 0, sizeof s);
		size = sizeof s;
		r = accept_here(pinned, &s, &size, &waits);
		size = size < sizeof s ? size : sizeof s;
		if (r == -EAGAIN && waits) {
			if ((r = wait_readable(call, pinned)) < 0)
				return r;
			continue;
		}
		if (r < 0)
			return r;
		if (fits(c, call, (int)r, &s, size))
			break;
		close((int)r);
	}
	address_unmark(&s, size);
	if (call->args[1].value &&
	    (lind_write(call->args[1], &s, room < size ? room : size) < 0 ||
		lind_write(call->args[2], &size, sizeof size) < 0)) {
		close((int)r);
		return -EFAULT;
	}
	if (flags & SOCK_NONBLOCK)
		fcntl((int)r, F_SETFL, fcntl((int)r, F_GETFL) | O_NONBLOCK);
	return hand_over(call, (int)r, flags & SOCK_CLOEXEC);
}

static int64_t on_accept(const struct lind_call *call)
{
	return on_pinned(call, NULL, accept_one);
}
LIND_HANDLE(answers, accept, on_accept);
LIND_HANDLE(answers, accept4, on_accept);

static int64_t send_to(struct client *c, const struct lind_call *call, struct lind_arg pinned,
    const struct socket_kind *kind, struct address *a)
{
	bool opens = call->args[3].value & MSG_FASTOPEN;
	uint64_t length = call->args[2].value;
	uint8_t bytes[512];
	int64_t r;

	if (a->family == AF_UNIX)
		return unix_send(c, call, pinned, NULL, a);
	/* A message that cannot be read is not a query; the kernel returns the error. */
	length = length < sizeof bytes ? length : sizeof bytes;
	if (opens || kind->proto != UDP || a->port != DNS_PORT || lind_read(call->args[1], bytes, (size_t)length) < 0)
		length = 0;
	r = opens ? judge(c, call, CONNECT, kind->proto, a)
		  : judge_sent(c, call, kind->proto, a, bytes, (size_t)length);
	if (r < 0)
		return r;
	if (opens)
		stream_connected(c, (int)call->args[0].value, kind->proto, a);
	r = with_address(call, pinned, 4, a);
	if (opens && r < 0 && r != -EINPROGRESS)
		streams_drop(c, (int)call->args[0].value);
	return r;
}

static int64_t on_sendto(const struct lind_call *call, int fd, struct lind_arg bytes, size_t count, int flags,
    const struct sockaddr *to, socklen_t length)
{
	struct address a;
	int64_t r;

	/* Neither an address nor room for one is none. */
	if (!to || !length)
		return lind_forward_sendto(call, fd, bytes, count, flags, NULL, 0);
	if ((r = stream_takes_no_name(call)) < 0)
		return r;
	r = with_family(to, length, true, &a);
	return r < 0 ? r : on_pinned(call, &a, send_to);
}
