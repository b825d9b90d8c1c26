/*
 * TCP and UDP between the programs of one sandbox. It prints the same on Linux, over the host's
 * loopback: the test compares the two. Numbers of ports are not printed, since the system chooses
 * them.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

union any {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
	struct sockaddr_storage storage;
};

static void say(const char *what, long r)
{
	if (r < 0)
		printf("%s: errno %d\n", what, errno);
	else
		printf("%s: %ld\n", what, r);
	fflush(stdout);
}

static socklen_t address(union any *a, const char *ip, int port)
{
	memset(a, 0, sizeof *a);
	if (strchr(ip, ':')) {
		a->in6.sin6_family = AF_INET6;
		a->in6.sin6_port = htons((uint16_t)port);
		inet_pton(AF_INET6, ip, &a->in6.sin6_addr);
		return sizeof a->in6;
	}
	a->in.sin_family = AF_INET;
	a->in.sin_port = htons((uint16_t)port);
	inet_pton(AF_INET, ip, &a->in.sin_addr);
	return sizeof a->in;
}

/* The address without its port, and whether that is `port`. */
static void show(const char *what, const union any *a, int port)
{
	char text[64] = "none";
	int own = 0;

	if (a->sa.sa_family == AF_INET) {
		inet_ntop(AF_INET, &a->in.sin_addr, text, sizeof text);
		own = ntohs(a->in.sin_port);
	} else if (a->sa.sa_family == AF_INET6) {
		inet_ntop(AF_INET6, &a->in6.sin6_addr, text, sizeof text);
		own = ntohs(a->in6.sin6_port);
	}
	/* Nothing else is in it. */
	if (a->sa.sa_family == AF_INET6 ? a->in6.sin6_flowinfo || a->in6.sin6_scope_id
					: memcmp(a->in.sin_zero, "\0\0\0\0\0\0\0", 8))
		printf("not clean: ");
	printf("%s: %s %s\n", what, text, own == port ? "that port" : own ? "a port" : "no port");
}

static int name_of(int fd, union any *a, int peer)
{
	socklen_t size = sizeof *a;

	memset(a, 0, sizeof *a);
	return peer ? getpeername(fd, &a->sa, &size) : getsockname(fd, &a->sa, &size);
}

static int port_of(int fd)
{
	union any a;

	name_of(fd, &a, 0);
	return ntohs(a.sa.sa_family == AF_INET6 ? a.in6.sin6_port : a.in.sin_port);
}

/* A listener at an address; its port. */
static int listener(const char *ip, int port, int *number)
{
	union any a;
	socklen_t size = address(&a, ip, port);
	int fd = socket(a.sa.sa_family, SOCK_STREAM, 0), one = 1;

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	if (bind(fd, &a.sa, size) || listen(fd, 5))
		say("listener", -1);
	*number = port_of(fd);
	return fd;
}

static int connected(const char *ip, int port)
{
	union any a;
	socklen_t size = address(&a, ip, port);
	int fd = socket(a.sa.sa_family, SOCK_STREAM, 0);

	if (connect(fd, &a.sa, size)) {
		int e = errno;

		close(fd);
		errno = e;
		return -1;
	}
	return fd;
}

static void streams(const char *at, const char *to)
{
	union any a;
	socklen_t size = sizeof a;
	char text[64] = "";
	int port, l = listener(at, 0, &port), c = connected(to, port), s, e;

	printf("-- %s %s\n", at, to);
	if (c < 0)
		say("connect", -1);
	memset(&a, 0, sizeof a);
	s = accept(l, &a.sa, &size);
	show("accepted from", &a, port_of(c));
	show("its own", (name_of(s, &a, 0), &a), port);
	show("its peer", (name_of(s, &a, 1), &a), port_of(c));
	show("client's own", (name_of(c, &a, 0), &a), port);
	show("client's peer", (name_of(c, &a, 1), &a), port);
	say("write", write(c, "hello", 5));
	say("read", read(s, text, sizeof text));
	say("send", send(s, "answer", 6, 0));
	say("recv", recv(c, text, sizeof text, 0));
	puts(text);
	e = 1;
	say("nodelay", setsockopt(c, IPPROTO_TCP, TCP_NODELAY, &e, sizeof e));
	e = 0, size = sizeof e;
	getsockopt(c, IPPROTO_TCP, TCP_NODELAY, &e, &size);
	say("is nodelay", e);
	size = sizeof e, getsockopt(s, SOL_SOCKET, SO_DOMAIN, &e, &size), say("domain", e);
	size = sizeof e, getsockopt(s, SOL_SOCKET, SO_PROTOCOL, &e, &size), say("protocol", e);
	size = sizeof e, getsockopt(s, SOL_SOCKET, SO_TYPE, &e, &size), say("type", e);
	size = sizeof e, getsockopt(l, SOL_SOCKET, SO_ACCEPTCONN, &e, &size), say("listens", e);
	size = sizeof e, getsockopt(c, SOL_SOCKET, SO_ERROR, &e, &size), say("error", e);
	address(&a, to, port);
	say("connect again", connect(c, &a.sa, a.sa.sa_family == AF_INET ? sizeof a.in : sizeof a.in6));
	say("bind again", bind(l, &a.sa, a.sa.sa_family == AF_INET ? sizeof a.in : sizeof a.in6));
	say("shutdown", shutdown(c, SHUT_WR));
	say("end", read(s, text, sizeof text));
	close(s);
	say("end of client", read(c, text, sizeof text));
	close(c);
	close(l);
	say("refused", connected(to, port));
}

static void ports(void)
{
	union any a;
	int port, other, l = listener("127.0.0.1", 0, &port), l2, fd = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t size = address(&a, "127.0.0.1", port);

	puts("-- ports");
	say("taken", bind(fd, &a.sa, size));
	address(&a, "127.0.0.2", port);
	say("another address", bind(fd, &a.sa, size));
	address(&a, "127.0.0.3", 0);
	say("twice", bind(fd, &a.sa, size));
	say("not here", connected("127.0.0.3", port));
	close(fd);
	fd = socket(AF_INET6, SOCK_STREAM, 0);
	size = address(&a, "127.0.0.1", port);
	say("other family", connect(fd, &a.sa, size));
	close(fd);
	fd = socket(AF_INET, SOCK_STREAM, 0);
	say("listen without bind", listen(fd, 1));
	other = port_of(fd);
	l2 = connected("127.0.0.1", other);
	say("reached", l2 >= 0);
	fcntl(l, F_SETFL, O_NONBLOCK);
	say("accept would wait", accept(l, NULL, NULL));
	/* It goes on listening. */
	for (int to = other; to; to = to == port ? 0 : port) {
		size = address(&a, "127.0.0.1", to);
		say("connect a listener", connect(l, &a.sa, size));
	}
	size = address(&a, "127.0.0.3", port);
	say("connect a listener where nobody is", connect(l, &a.sa, size));
	close(l2);
	l2 = connected("127.0.0.1", port);
	say("listens still", l2 >= 0);
	close(l2), close(fd), close(l);
}

static void *accepts(void *arg)
{
	int s = accept(*(int *)arg, NULL, NULL);

	write(s, "late", 4);
	close(s);
	return NULL;
}

static void waiting(void)
{
	struct epoll_event e = { .events = EPOLLIN }, got = { 0 };
	struct pollfd p = { .events = POLLIN };
	char text[8] = "";
	pthread_t thread;
	int port, l = listener("127.0.0.1", 0, &port), ep = epoll_create1(0), c, flags;

	puts("-- waiting");
	epoll_ctl(ep, EPOLL_CTL_ADD, l, &e);
	say("nothing", epoll_wait(ep, &got, 1, 0));
	c = connected("127.0.0.1", port);
	say("to accept", epoll_wait(ep, &got, 1, 1000));
	pthread_create(&thread, NULL, accepts, &l);
	p.fd = c;
	say("to read", poll(&p, 1, 5000));
	say("read", read(c, text, 4));
	puts(text);
	pthread_join(thread, NULL);
	close(c);
	c = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	{
		union any a;
		socklen_t size = address(&a, "127.0.0.1", port);
		int r = connect(c, &a.sa, size);

		say("begun", r == 0 || errno == EINPROGRESS);
		p.fd = c, p.events = POLLOUT;
		say("made", poll(&p, 1, 1000));
		flags = fcntl(c, F_GETFL);
		say("still does not wait", !!(flags & O_NONBLOCK));
		say("no data", read(c, text, 1));
	}
	close(c), close(l), close(ep);
}

/* A child serves its parent; the socket is inherited, and the port is free after both. */
static void children(void)
{
	char text[8] = "";
	int port, l = listener("0.0.0.0", 0, &port), c, status;

	puts("-- children");
	if (!fork()) {
		int s = accept(l, NULL, NULL);

		read(s, text, 4);
		write(s, text, 4);
		_exit(3);
	}
	c = connected("127.0.0.1", port);
	write(c, "ping", 4);
	say("from the child", read(c, text, 4));
	puts(text);
	wait(&status);
	say("its status", WEXITSTATUS(status));
	close(c), close(l);
}

static void datagrams(const char *at, const char *to)
{
	union any a, from;
	socklen_t size = address(&a, at, 0), length;
	static char large[70000];
	char text[16] = "";
	int s = socket(a.sa.sa_family, SOCK_DGRAM, 0), c, port;
	struct iovec piece = { text, sizeof text };
	struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &piece, .msg_iovlen = 1 };

	printf("-- datagrams %s %s\n", at, to);
	say("bind", bind(s, &a.sa, size));
	port = port_of(s);
	size = address(&a, to, port);
	c = socket(a.sa.sa_family, SOCK_DGRAM, 0);
	say("sendto", sendto(c, "one", 3, 0, &a.sa, size));
	memset(&from, 0, sizeof from);
	length = sizeof from;
	say("recvfrom", recvfrom(s, text, sizeof text, 0, &from.sa, &length));
	show("from", &from, port_of(c));
	say("answer", sendto(s, "two", 3, 0, &from.sa, length));
	memset(&from, 0, sizeof from);
	say("recvmsg", recvmsg(c, &m, 0));
	show("from", &from, port);
	say("connect", connect(c, &a.sa, size));
	show("peer", (name_of(c, &from, 1), &from), port);
	say("send", send(c, "three", 5, 0));
	say("recv", recv(s, text, 2, 0));
	say("nothing more", recv(s, text, 2, MSG_DONTWAIT));
	say("too large", sendto(c, large, sizeof large, 0, &a.sa, size));
	close(s);
	close(c);
	c = socket(a.sa.sa_family, SOCK_DGRAM, 0);
	say("to nobody", sendto(c, "x", 1, 0, &a.sa, size));
	close(c);
}

/* A connection goes to another process in a message, and is the same there. */
static void passed(void)
{
	union any a;
	char control[CMSG_SPACE(sizeof(int))] = "", byte = 'x', text[8] = "";
	struct iovec piece = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &piece, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&m);
	int port, l = listener("127.0.0.1", 0, &port), c = connected("127.0.0.1", port), s = accept(l, NULL, NULL),
		  pair[2], got;

	puts("-- passed");
	socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
	*head = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof s), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS };
	memcpy(CMSG_DATA(head), &s, sizeof s);
	say("descriptors by TCP", sendmsg(c, &m, 0));
	say("sent", sendmsg(pair[0], &m, 0));
	say("received", recvmsg(pair[1], &m, 0));
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
	close(s);
	show("its own", (name_of(got, &a, 0), &a), port);
	show("its peer", (name_of(got, &a, 1), &a), port_of(c));
	say("write", write(got, "hi", 2));
	say("read", read(c, text, 2));
	close(got), close(c), close(l), close(pair[0]), close(pair[1]);
}

static void abstract_names(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "\0lind-loopback-test" };
	socklen_t size = sizeof(sa_family_t) + 19;
	int l = socket(AF_UNIX, SOCK_STREAM, 0), c = socket(AF_UNIX, SOCK_STREAM, 0);

	puts("-- abstract names");
	say("bind", bind(l, (struct sockaddr *)&un, size));
	say("listen", listen(l, 1));
	say("connect", connect(c, (struct sockaddr *)&un, size));
	close(l), close(c);
}

static void registered(int ep, int fd, int number)
{
	struct epoll_event wanted = { .events = EPOLLIN, .data.u32 = (uint32_t)number };

	say("added", epoll_ctl(ep, EPOLL_CTL_ADD, fd, &wanted));
}

/* Waits, and says which sockets there is something to read from. */
static void comes(int ep, int many)
{
	struct epoll_event found[8];
	unsigned numbers = 0;
	int n = epoll_wait(ep, found, 8, 5000);

	for (int i = 0; i < n; i++)
		numbers |= found[i].events & EPOLLIN ? 1u << found[i].data.u32 : 1u << 31;
	say("events", n == many ? (long)numbers : -n);
}

/* Sockets that an epoll instance waits for before they have an address or a peer, one of them by
 * two numbers. */
static void registered_first(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0),
	    receiver = socket(AF_INET, SOCK_DGRAM, 0);
	int ep = epoll_create1(0), other = epoll_create1(0), again = dup(listener), server,
	    sender = socket(AF_INET, SOCK_DGRAM, 0);
	union any at;
	socklen_t size = address(&at, "127.0.0.1", 0);

	registered(ep, listener, 1);
	registered(ep, again, 2);
	registered(ep, receiver, 3);
	registered(other, client, 4);
	say("bind", bind(listener, &at.sa, size));
	say("bind", bind(receiver, &at.sa, size));
	say("listen", listen(listener, 5));
	getsockname(listener, &at.sa, &size);
	say("connect", connect(client, &at.sa, size));
	comes(ep, 2);
	server = accept(listener, NULL, NULL);
	say("write", write(server, "x", 1));
	comes(other, 1);
	getsockname(receiver, &at.sa, &size);
	say("sendto", sendto(sender, "x", 1, 0, &at.sa, size));
	comes(ep, 1);
	say("removed", epoll_ctl(other, EPOLL_CTL_DEL, client, NULL));
	close(listener), close(again), close(client), close(receiver), close(sender), close(server), close(ep),
	    close(other);
}

int main(int argc, char **argv)
{
	(void)argv;
	streams("127.0.0.1", "127.0.0.1");
	streams("0.0.0.0", "127.0.0.1");
	streams("::1", "::1");
	streams("::", "127.0.0.1");
	streams("0.0.0.0", "127.0.0.9");
	ports();
	waiting();
	registered_first();
	children();
	datagrams("127.0.0.1", "127.0.0.1");
	/* Where datagrams may leave the sandbox, such a socket is the host's. */
	if (argc == 1)
		datagrams("0.0.0.0", "127.0.0.1");
	datagrams("::1", "::1");
	passed();
	abstract_names();
	return 0;
}
