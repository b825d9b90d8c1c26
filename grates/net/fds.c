/* The kind of a descriptor, and whether the client may have a socket that comes from elsewhere. */
#include <errno.h>
#include <fcntl.h>
#include <lind/fds.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>
#include "net.h"

/* That the first program may be started with. */
#define DESCRIPTORS 4096

#define IPPROTO_MPTCP_ 262

int pin(const struct lind_call *call, struct lind_arg *pinned)
{
	struct lind_arg none = { 0, lind_self() };
	int64_t fd = lind_call(SYS_fcntl, lind_self(), call->args[0], (struct lind_arg){ F_DUPFD_CLOEXEC, lind_self() },
	    none, none, none, none);

	*pinned = (struct lind_arg){ (uint64_t)fd, lind_self() };
	return fd < 0 ? (int)fd : 0;
}

void unpin(struct lind_arg pinned)
{
	close((int)pinned.value);
}

int64_t hand_over(const struct lind_call *call, int fd, bool cloexec)
{
	struct lind_arg none = { 0, call->target };
	int64_t r = lind_call(SYS_fcntl, call->target, (struct lind_arg){ (uint64_t)fd, lind_self() },
	    (struct lind_arg){ cloexec ? F_DUPFD_CLOEXEC : F_DUPFD, call->target }, none, none, none, none);

	close(fd);
	return r;
}

int64_t wait_readable(const struct lind_call *call, struct lind_arg pinned)
{
	struct epoll_event wanted = { .events = EPOLLIN | EPOLLPRI | EPOLLRDHUP }, ready = { 0 };
	struct lind_arg none = { 0, call->target };
	struct timeval limit = { 0, 0 };
	socklen_t size = sizeof limit;
	int64_t r, timeout = -1;
	int epoll = epoll_create1(EPOLL_CLOEXEC);

	if (epoll < 0)
		return -errno;
	if (getsockopt((int)pinned.value, SOL_SOCKET, SO_RCVTIMEO, &limit, &size) == 0 &&
	    (limit.tv_sec || limit.tv_usec))
		timeout = limit.tv_sec > INT32_MAX / 1000 - 1 ? INT32_MAX
							      : limit.tv_sec * 1000 + (limit.tv_usec + 999) / 1000;
	r = epoll_ctl(epoll, EPOLL_CTL_ADD, (int)pinned.value, &wanted)
	    ? -errno
	    : lind_call(SYS_epoll_wait, call->target, (struct lind_arg){ (uint64_t)epoll, lind_self() },
		  lind_mine(&ready), (struct lind_arg){ 1, call->target },
		  (struct lind_arg){ (uint64_t)timeout, call->target }, none, none);
	close(epoll);
	return r < 0 ? r : r ? 0 : -EAGAIN;
}

static int option(uint64_t target, struct lind_arg fd, int name, int *value)
{
	struct lind_arg none = { 0, target };
	uint32_t size = sizeof *value;

	return (int)lind_call(SYS_getsockopt, target, fd, (struct lind_arg){ SOL_SOCKET, target },
	    (struct lind_arg){ (uint64_t)name, target }, lind_mine(value), lind_mine(&size), none);
}

bool socket_kind(uint64_t target, struct lind_arg fd, struct socket_kind *kind)
{
	int protocol = 0;

	*kind = (struct socket_kind){ 0 };
	if (option(target, fd, SO_DOMAIN, &kind->domain) < 0 || option(target, fd, SO_TYPE, &kind->type) < 0 ||
	    option(target, fd, SO_PROTOCOL, &protocol) < 0)
		return false;
	if (kind->domain == AF_UNIX)
		kind->proto = UNIX;
	else if (kind->domain == AF_INET || kind->domain == AF_INET6)
		kind->proto = kind->type == SOCK_STREAM && (protocol == IPPROTO_TCP || protocol == IPPROTO_MPTCP_) ? TCP
		    : kind->type == SOCK_DGRAM && (protocol == IPPROTO_UDP || protocol == IPPROTO_UDPLITE)         ? UDP
		    : kind->type == SOCK_DGRAM && (protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6) ? ICMP
													   : 0;
	return true;
}

int64_t stream_takes_no_name(const struct lind_call *call)
{
	struct sockaddr_storage peer = { 0 };
	uint32_t size = sizeof peer;
	struct socket_kind kind;

	if (!socket_kind(call->target, call->args[0], &kind) || kind.domain != AF_UNIX || kind.type != SOCK_STREAM)
		return 0;
	return lind_forward_getpeername(call, (int)call->args[0].value, lind_mine(&peer), lind_mine(&size)) < 0
	    ? -EOPNOTSUPP
	    : -EISCONN;
}

bool socket_name(uint64_t target, struct lind_arg fd, bool peer, struct address *a)
{
	struct lind_arg none = { 0, target };
	struct sockaddr_storage s = { 0 };
	uint32_t size = sizeof s;

	memset(a, 0, sizeof *a);
	return lind_call(peer ? SYS_getpeername : SYS_getsockname, target, fd, lind_mine(&s), lind_mine(&size), none,
		   none, none) >= 0 &&
	    size <= sizeof s && address_parse(&s, size, false, a) >= 0;
}

bool socket_fits(uint64_t target, struct lind_arg fd, char *why, size_t size)
{
	struct address peer, own, by_port;
	struct socket_kind kind;
	char text[160];
	int listens = 0;

	if (!socket_kind(target, fd, &kind) || kind.domain == AF_UNIX)
		return true;
	snprintf(why, size, "of a family or protocol that is denied");
	if (!kind.proto)
		return false;
	if (!socket_name(target, fd, false, &own))
		return false;
	if (own.own)
		return true;
	if (socket_name(target, fd, true, &peer)) {
		by_port = peer;
		by_port.port = own.port;
		snprintf(why, size, "connected to %s", address_text(&peer, text, sizeof text));
		return allowed(CONNECT, kind.proto, &peer) || allowed(ACCEPT, kind.proto, &by_port);
	}
	option(target, fd, SO_ACCEPTCONN, &listens);
	snprintf(why, size, "%s %s", listens ? "listening at" : "bound to", address_text(&own, text, sizeof text));
	return !own.port || (allowed(BIND, kind.proto, &own) && (!listens || allowed(LISTEN, kind.proto, &own)));
}

/* Decides by the name that its peer is bound to. A relative name, as of sockets bound through
 * this grate, does not say which file it is. */
static bool unix_fits(struct lind_arg fd, char *why, size_t size)
{
	struct address peer;
	struct socket_kind kind;
	char text[160];

	if (!socket_kind(lind_self(), fd, &kind) || kind.domain != AF_UNIX ||
	    !socket_name(lind_self(), fd, true, &peer) || !peer.path_length || (!peer.abstract && peer.path[0] != '/'))
		return true;
	snprintf(why, size, "connected to %s", address_text(&peer, text, sizeof text));
	return allowed(CONNECT, UNIX, &peer) || allowed(SEND, UNIX, &peer);
}

bool received_fits(struct lind_arg fd, char *why, size_t size)
{
	return unix_fits(fd, why, size) && socket_fits(lind_self(), fd, why, size);
}

/* A descriptor that the first program would inherit. */
static void vet(int fd)
{
	uint64_t self = lind_self();
	char why[200];
	int null;

	if (fcntl(fd, F_GETFD) < 0 || socket_fits(self, (struct lind_arg){ (uint64_t)fd, self }, why, sizeof why))
		return;
	lind_log("descriptor %d is a socket %s, which is denied: replaced by /dev/null", fd, why);
	if ((null = open("/dev/null", O_RDWR | O_CLOEXEC)) < 0 || dup2(null, fd) < 0)
		lind_die("/dev/null: %s", strerror(errno));
	close(null);
}

void vet_own(void)
{
	lind_each_own_fd(DESCRIPTORS, vet);
}
