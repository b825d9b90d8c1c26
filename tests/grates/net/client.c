/* What programs try with the network: `client WHAT [ARGS]`. Prints errnos, 0 for what worked. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <lind/grate.h>
#include <netinet/in.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define RACERS 16

static char **arg;

static void say(const char *what, int failed)
{
	printf("%s %d ", what, failed ? errno : 0);
}

static struct sockaddr_in at(const char *ip, int port)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };

	if (inet_pton(AF_INET, ip, &in.sin_addr) != 1)
		exit(2);
	return in;
}

static struct sockaddr_in6 at6(const char *ip, int port)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port) };

	if (inet_pton(AF_INET6, ip, &in.sin6_addr) != 1)
		exit(2);
	return in;
}

static struct sockaddr_in6 mapped(const char *ip, int port)
{
	char text[64];

	snprintf(text, sizeof text, "::ffff:%s", ip);
	return at6(text, port);
}

#define AS(a) (struct sockaddr *)&(a), sizeof(a)

static int fresh(int domain, int type)
{
	int fd = socket(domain, type, 0);

	if (fd < 0)
		exit(3);
	return fd;
}

/* ADDRESS PORT: every way to reach it. */
static void reach(void)
{
	struct sockaddr_in in = at(arg[0], atoi(arg[1])), none = in;
	struct sockaddr_in6 in6 = mapped(arg[0], atoi(arg[1]));
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_name = &in, .msg_namelen = sizeof in, .msg_iov = &iov, .msg_iovlen = 1 };
	struct mmsghdr mm[2] = { { .msg_hdr = m }, { .msg_hdr = m } };

	none.sin_family = AF_UNSPEC;
	say("tcp", connect(fresh(AF_INET, SOCK_STREAM), AS(in)));
	say("mapped", connect(fresh(AF_INET6, SOCK_STREAM), AS(in6)));
	say("fastopen", sendto(fresh(AF_INET, SOCK_STREAM), "x", 1, MSG_FASTOPEN, AS(in)) < 0);
	say("udp", connect(fresh(AF_INET, SOCK_DGRAM), AS(in)));
	say("4on6", connect(fresh(AF_INET6, SOCK_DGRAM), AS(in)));
	say("sendto", sendto(fresh(AF_INET, SOCK_DGRAM), "x", 1, 0, AS(in)) < 0);
	say("mapped", sendto(fresh(AF_INET6, SOCK_DGRAM), "x", 1, 0, AS(in6)) < 0);
	say("unspec", sendto(fresh(AF_INET, SOCK_DGRAM), "x", 1, 0, AS(none)) < 0);
	say("sendmsg", sendmsg(fresh(AF_INET, SOCK_DGRAM), &m, 0) < 0);
	printf("sendmmsg %d ", sendmmsg(fresh(AF_INET, SOCK_DGRAM), mm, 2, 0) == 2 ? 0 : errno);
	m.msg_name = &none;
	say("unspec", sendmsg(fresh(AF_INET, SOCK_DGRAM), &m, 0) < 0);
	puts("");
}

/* PORT: addresses that all mean this host. */
static void here(void)
{
	int port = atoi(arg[0]);
	struct sockaddr_in any = at("0.0.0.0", port), other = at("127.0.0.2", port);
	struct sockaddr_in6 any6 = at6("::", port), mapped6 = mapped("0.0.0.0", port);

	say("any", connect(fresh(AF_INET, SOCK_STREAM), AS(any)));
	say("mapped", connect(fresh(AF_INET6, SOCK_STREAM), AS(mapped6)));
	say("any6", connect(fresh(AF_INET6, SOCK_STREAM), AS(any6)));
	say("other", connect(fresh(AF_INET, SOCK_STREAM), AS(other)));
	puts("");
}

static void binds(void)
{
	struct sockaddr_in in = at("127.0.0.1", 0), any = at("0.0.0.0", 0), none = any;
	struct sockaddr_in6 in6 = mapped("127.0.0.1", 0);
	int fd;

	none.sin_family = AF_UNSPEC;
	say("own", bind(fresh(AF_INET, SOCK_STREAM), AS(in)));
	say("mapped", bind(fresh(AF_INET6, SOCK_STREAM), AS(in6)));
	say("any", bind(fresh(AF_INET, SOCK_STREAM), AS(any)));
	say("unspec", bind(fresh(AF_INET, SOCK_STREAM), AS(none)));
	say("udp", bind(fresh(AF_INET, SOCK_DGRAM), AS(in)));
	say("listen", listen(fresh(AF_INET, SOCK_STREAM), 1));
	fd = fresh(AF_INET, SOCK_STREAM);
	bind(fd, AS(in));
	say("bound", listen(fd, 1));
	puts("");
}

static void kinds(void)
{
	say("raw", socket(AF_INET, SOCK_RAW, IPPROTO_TCP) < 0);
	say("packet", socket(AF_PACKET, SOCK_DGRAM, 0) < 0);
	say("netlink", socket(AF_NETLINK, SOCK_RAW, 0) < 0);
	say("vsock", socket(AF_VSOCK, SOCK_STREAM, 0) < 0);
	say("icmp", socket(AF_INET, SOCK_DGRAM, IPPROTO_ICMP) < 0);
	say("sctp", socket(AF_INET, SOCK_STREAM, IPPROTO_SCTP) < 0);
	say("tcp", socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0) < 0);
	puts("");
}

static void options(void)
{
	int fd = fresh(AF_INET, SOCK_DGRAM), six = fresh(AF_INET6, SOCK_DGRAM), one = 1;
	struct sockaddr_in in = at("127.0.0.1", atoi(arg[0]));
	union { char bytes[64]; struct cmsghdr align; } control = { { 0 } };
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_name = &in, .msg_namelen = sizeof in, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes };
	struct cmsghdr *c;

	say("device", setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
	say("options", setsockopt(fd, IPPROTO_IP, IP_OPTIONS, "\x83\7\4\x7f\0\0\1", 8));
	say("rthdr", setsockopt(six, IPPROTO_IPV6, IPV6_RTHDR, "", 0));
	say("reuse", setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
	m.msg_controllen = CMSG_SPACE(sizeof one);
	c = CMSG_FIRSTHDR(&m);
	c->cmsg_len = CMSG_LEN(sizeof one);
	c->cmsg_level = IPPROTO_IP;
	c->cmsg_type = IP_RETOPTS;
	say("retopts", sendmsg(fd, &m, 0) < 0);
	c->cmsg_type = IP_TTL;
	memcpy(CMSG_DATA(c), &one, sizeof one);
	say("ttl", sendmsg(fd, &m, 0) < 0);
	puts("");
}

/* ALLOWED DENIED: ports. */
static void disconnect(void)
{
	struct sockaddr_in good = at("127.0.0.1", atoi(arg[0])), bad = at("127.0.0.1", atoi(arg[1]));
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	int fd = fresh(AF_INET, SOCK_DGRAM);

	say("connect", connect(fd, AS(good)));
	say("again", connect(fd, AS(bad)));
	say("send", send(fd, "x", 1, 0) < 0);
	say("unspec", connect(fd, AS(none)));
	say("send", send(fd, "x", 1, 0) < 0);
	say("sendto", sendto(fd, "x", 1, 0, AS(bad)) < 0);
	say("sendto", sendto(fd, "x", 1, 0, AS(good)) < 0);
	puts("");
}

static struct sockaddr_in moving;
static volatile int done;

static void *move(void *ports)
{
	while (!done) {
		__atomic_store_n(&moving.sin_port, ((in_port_t *)ports)[0], __ATOMIC_RELAXED);
		__atomic_store_n(&moving.sin_port, ((in_port_t *)ports)[1], __ATOMIC_RELAXED);
	}
	return NULL;
}

/* ALLOWED DENIED: the address changes under the call. The denied one counts what it gets. */
static void race_address(void)
{
	in_port_t ports[2] = { htons((uint16_t)atoi(arg[0])), htons((uint16_t)atoi(arg[1])) };
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_name = &moving, .msg_namelen = sizeof moving, .msg_iov = &iov, .msg_iovlen = 1 };
	int udp = fresh(AF_INET, SOCK_DGRAM), worked = 0, denied = 0;
	pthread_t t;

	moving = at("127.0.0.1", atoi(arg[0]));
	pthread_create(&t, NULL, move, ports);
	/* Until both have happened: on a busy machine the other thread may not run for long. */
	for (int i = 0; i < 300 || !worked; i++) {
		int fd = fresh(AF_INET, SOCK_STREAM);

		worked += connect(fd, AS(moving)) == 0;
		close(fd);
	}
	for (int i = 0; i < 3000 || !denied; i++)
		if ((i % 2 ? sendto(udp, "x", 1, 0, AS(moving)) : sendmsg(udp, &m, 0)) < 0)
			denied += errno == EACCES;
	done = 1;
	pthread_join(t, NULL);
	printf("worked %d denied %d\n", worked > 0, denied > 0);
}

/* ALLOWED DENIED, from many cages at once: how often each did what it must. */
static void race_cages(void)
{
	struct sockaddr_in good = at("127.0.0.1", atoi(arg[0])), bad = at("127.0.0.1", atoi(arg[1]));
	int right = 0, status;

	for (int i = 0; i < RACERS; i++)
		if (!fork()) {
			int n = 0;

			for (int j = 0; j < 20; j++) {
				int fd = fresh(AF_INET, SOCK_STREAM), other = fresh(AF_INET, SOCK_STREAM);

				n += connect(fd, AS(good)) == 0;
				n += connect(other, AS(bad)) < 0 && errno == EACCES;
				close(fd);
				close(other);
			}
			_exit(n);
		}
	while (wait(&status) > 0)
		right += WEXITSTATUS(status);
	printf("right %d of %d\n", right, RACERS * 40);
}

/* COUNT: a server; says its port, then from where it got connections. */
static void serve(void)
{
	struct sockaddr_in in = at("0.0.0.0", 0), peer;
	socklen_t length = sizeof in;
	int fd = fresh(AF_INET, SOCK_STREAM);
	char text[64];

	say("bind", bind(fd, AS(in)));
	say("listen", listen(fd, 8));
	getsockname(fd, (struct sockaddr *)&in, &length);
	printf("port %d\n", ntohs(in.sin_port));
	for (int i = 0; i < atoi(arg[0]); i++) {
		int one;

		length = sizeof peer;
		one = accept(fd, (struct sockaddr *)&peer, &length);
		printf("%s %u\n", one < 0 ? strerror(errno) : inet_ntop(AF_INET, &peer.sin_addr, text, sizeof text), (unsigned)length);
		close(one);
	}
}

static struct sockaddr_un path(const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	strncpy(un.sun_path, name, sizeof un.sun_path - 1);
	return un;
}

static void *swap_links(void *unused)
{
	while (!done) {
		symlink("good", "moving.new");
		rename("moving.new", "moving");
		symlink("bad", "moving.new");
		rename("moving.new", "moving");
	}
	return unused;
}

/* In a directory with listening sockets good and bad; only good is allowed. */
static void unixes(void)
{
	static const char *const names[] = { "good", "bad", "./good", "link-to-good", "link-to-bad", "good/../bad", "sub/../bad", "none" };
	struct sockaddr_un un, to_bad = path("bad");
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_name = &to_bad, .msg_namelen = sizeof to_bad, .msg_iov = &iov, .msg_iovlen = 1 };
	pthread_t t;
	int worked = 0, denied = 0;

	symlink("good", "link-to-good");
	symlink("bad", "link-to-bad");
	mkdir("sub", 0700);
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		un = path(names[i]);
		say(names[i], connect(fresh(AF_UNIX, SOCK_STREAM), AS(un)));
	}
	say("dgram", sendto(fresh(AF_UNIX, SOCK_DGRAM), "x", 1, 0, AS(to_bad)) < 0);
	say("sendmsg", sendmsg(fresh(AF_UNIX, SOCK_DGRAM), &m, 0) < 0);
	un = path("made");
	say("bind", bind(fresh(AF_UNIX, SOCK_STREAM), AS(un)));
	un = path("sub/made");
	say("bind", bind(fresh(AF_UNIX, SOCK_STREAM), AS(un)));
	un = path("");
	memcpy(un.sun_path + 1, "name", 4);
	say("abstract", bind(fresh(AF_UNIX, SOCK_STREAM), (struct sockaddr *)&un, sizeof(sa_family_t) + 5));
	say("autobind", bind(fresh(AF_UNIX, SOCK_STREAM), (struct sockaddr *)&un, sizeof(sa_family_t)));
	pthread_create(&t, NULL, swap_links, NULL);
	un = path("moving");
	for (int i = 0; i < 500 || !worked || !denied; i++) {
		int fd = fresh(AF_UNIX, SOCK_STREAM);

		if (connect(fd, AS(un)) == 0)
			worked++;
		else
			denied += errno == EACCES;
		close(fd);
	}
	done = 1;
	pthread_join(t, NULL);
	printf("race %d %d\n", worked > 0, denied > 0);
}

/* PATH: gets descriptors by a message, one at a time, and says what came. */
static void rights(void)
{
	union { char bytes[CMSG_SPACE(4 * sizeof(int))]; struct cmsghdr align; } control;
	struct sockaddr_un un = path(arg[0]);
	int fd = fresh(AF_UNIX, SOCK_STREAM);
	char byte;

	say("connect", connect(fd, AS(un)));
	for (;;) {
		struct iovec iov = { &byte, 1 };
		struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control };
		struct cmsghdr *c;

		if (recvmsg(fd, &m, 0) <= 0)
			break;
		c = CMSG_FIRSTHDR(&m);
		printf("got %d cut %d ", c ? (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int)) : 0, !!(m.msg_flags & MSG_CTRUNC));
	}
	puts("");
}

/* A query for a name's address, of which the end is `how`: the bytes. */
static size_t query(const char *name, unsigned char *to)
{
	static const unsigned char header[] = { 0x12, 0x34, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0 };
	size_t n = sizeof header;

	memcpy(to, header, n);
	while (*name) {
		size_t length = strcspn(name, ".");

		to[n++] = (unsigned char)length;
		memcpy(to + n, name, length);
		n += length;
		name += length + (name[length] == '.');
	}
	memcpy(to + n, "\0\0\1\0\1", 5);
	return n + 5;
}

static int udp_to(int port)
{
	struct sockaddr_in in = at("127.0.0.1", port);
	int fd = fresh(AF_INET, SOCK_DGRAM);

	if (connect(fd, AS(in)))
		printf("resolver %d ", errno);
	return fd;
}

/* Asks in one of several ways and reads the answer. */
static void ask(const char *how, const char *name, int port)
{
	unsigned char q[300], answer[2048];
	struct sockaddr_in in = at("127.0.0.1", port), from;
	size_t n = query(name, q + 2);
	socklen_t length = sizeof from;
	struct iovec iov[2] = { { answer, 7 }, { answer + 7, sizeof answer - 7 } };
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 };
	ssize_t got = -1;
	int fd;

	q[0] = (unsigned char)(n >> 8);
	q[1] = (unsigned char)n;
	if (!strcmp(how, "tcp") || !strcmp(how, "bytes") || !strcmp(how, "copied") || !strcmp(how, "forked")) {
		fd = fresh(AF_INET, SOCK_STREAM);
		if (!strcmp(how, "copied"))
			dup(fd);
		if (connect(fd, AS(in)) || write(fd, q, n + 2) < 0)
			printf("resolver %d ", errno);
		if (!strcmp(how, "forked") && !fork())
			_exit(0);
		for (size_t have = 0;; have += (size_t)got)
			if ((got = have % 2 ? read(fd, answer + have, !strcmp(how, "bytes") ? 1 : 100) : recv(fd, answer + have, !strcmp(how, "bytes") ? 3 : 5, 0)) <= 0)
				break;
		close(fd);
		return;
	}
	fd = udp_to(port);
	if (write(fd, q + 2, n) < 0)
		printf("resolver %d ", errno);
	if (!strcmp(how, "read"))
		got = read(fd, answer, sizeof answer);
	if (!strcmp(how, "readv"))
		got = readv(fd, iov, 2);
	if (!strcmp(how, "recvmsg"))
		got = recvmsg(fd, &m, 0);
	if (!strcmp(how, "recv"))
		got = recv(fd, answer, sizeof answer, 0);
	if (!strcmp(how, "recvfrom")) {
		got = recvfrom(fd, answer, sizeof answer, 0, (struct sockaddr *)&from, &length);
		if (got > 0 && (length != sizeof from || from.sin_port != in.sin_port))
			printf("from %u:%u ", (unsigned)length, ntohs(from.sin_port));
	}
	if (got < 12 || memcmp(answer, q + 2, 2))
		printf("no answer %zd ", got);
	close(fd);
}

/* RESOLVER PORT HOW NAME ADDRESS ...: what can be reached before and after asking for the name. */
static void dns(void)
{
	for (; arg[2]; arg += 3) {
		int resolver = atoi(arg[0]), port = atoi(arg[1]);
		struct sockaddr_in in = at(arg[4], port);

		say("before", connect(fresh(AF_INET, SOCK_STREAM), AS(in)));
		ask(arg[2], arg[3], resolver);
		say("after", connect(fresh(AF_INET, SOCK_STREAM), AS(in)));
		puts("");
		arg[3] = arg[0];
		arg[4] = arg[1];
	}
}

/* RESOLVER PORT FORGED-HEX: answers that no resolver gave. */
static void forge(void)
{
	struct sockaddr_in in = at("127.0.0.3", atoi(arg[1])), resolver = at("127.0.0.1", atoi(arg[0])), self = at("127.0.0.1", 0);
	unsigned char bytes[1024], got[1024];
	socklen_t length = sizeof self;
	size_t n = strlen(arg[2]) / 2;
	int s[2], fd, one = 1;

	for (size_t i = 0; i < n; i++)
		sscanf(arg[2] + 2 * i, "%2hhx", &bytes[i]);
	/* From a socket of our own. */
	fd = fresh(AF_INET, SOCK_DGRAM);
	bind(fd, AS(self));
	getsockname(fd, (struct sockaddr *)&self, &length);
	sendto(fd, bytes, n, 0, AS(self));
	printf("own %d ", recv(fd, got, sizeof got, MSG_DONTWAIT) == (ssize_t)n);
	/* In a resolver's place. */
	setsockopt(fd = fresh(AF_INET, SOCK_DGRAM), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
	say("place", bind(fd, AS(resolver)));
	/* From another place, with the resolver's port, in its name. */
	fd = fresh(AF_INET, SOCK_DGRAM);
	resolver = at("127.0.0.2", atoi(arg[0]));
	say("beside", bind(fd, AS(resolver)));
	for (int six = 0; six < 2; six++) {
		int to = fresh(AF_INET, SOCK_DGRAM), from = fd;
		struct in6_pktinfo info6 = { .ipi6_addr = mapped("127.0.0.1", 0).sin6_addr };
		struct in_pktinfo info = { .ipi_spec_dst = at("127.0.0.1", 0).sin_addr };
		size_t size = six ? sizeof info6 : sizeof info;
		char control[CMSG_SPACE(sizeof info6)] = { 0 };
		struct iovec iov = { bytes, n };
		struct msghdr m = { .msg_name = &self, .msg_namelen = sizeof self, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			.msg_controllen = CMSG_SPACE(size) };
		struct cmsghdr *c = CMSG_FIRSTHDR(&m);
		struct sockaddr_in6 self6;

		self = at("127.0.0.1", 0);
		bind(to, AS(self));
		length = sizeof self;
		getsockname(to, (struct sockaddr *)&self, &length);
		c->cmsg_level = six ? IPPROTO_IPV6 : IPPROTO_IP;
		c->cmsg_type = six ? IPV6_PKTINFO : IP_PKTINFO;
		c->cmsg_len = CMSG_LEN(size);
		memcpy(CMSG_DATA(c), six ? (void *)&info6 : (void *)&info, size);
		if (six) {
			close(fd);
			from = fresh(AF_INET6, SOCK_DGRAM);
			self6 = mapped("127.0.0.2", atoi(arg[0]));
			bind(from, AS(self6));
			self6 = mapped("127.0.0.1", ntohs(self.sin_port));
			m.msg_name = &self6;
			m.msg_namelen = sizeof self6;
		}
		say("source", sendmsg(from, &m, 0) < 0);
		recv(to, got, sizeof got, MSG_DONTWAIT);
	}
	say("reached", connect(fresh(AF_INET, SOCK_STREAM), AS(in)));
	/* From the queue of errors: what we sent, under the resolver's name. */
	fd = fresh(AF_INET, SOCK_DGRAM);
	setsockopt(fd, IPPROTO_IP, IP_RECVERR, &one, sizeof one);
	resolver = at("127.0.0.1", atoi(arg[3]));
	sendto(fd, bytes, n, 0, AS(resolver));
	for (int i = 0; i < 100; i++) {
		struct pollfd p = { fd, 0, 0 };
		struct sockaddr_in from;
		struct iovec iov = { got, sizeof got };
		char control[512];
		struct msghdr m = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control,
			.msg_controllen = sizeof control };

		poll(&p, 1, 10);
		if (recvmsg(fd, &m, MSG_ERRQUEUE) > 0) {
			printf("queue %d ", from.sin_port == resolver.sin_port);
			break;
		}
	}
	/* From a number that was a resolver's connection. */
	fd = fresh(AF_INET, SOCK_STREAM);
	resolver = at("127.0.0.1", atoi(arg[0]));
	say("connect", connect(fd, AS(resolver)));
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, s))
		exit(4);
	dup2(s[0], fd);
	got[0] = (unsigned char)(n >> 8);
	got[1] = (unsigned char)n;
	write(s[1], got, 2);
	write(s[1], bytes, n);
	read(fd, got, sizeof got);
	say("reached", connect(fresh(AF_INET, SOCK_STREAM), AS(in)));
	puts("");
}

/* What is read from a datagram socket by one way, at once: its first byte, `-` if there is nothing. */
static void take(const char *way, int fd)
{
	char byte = '-', more[8], control[64];
	struct iovec iov[2] = { { &byte, 1 }, { more, sizeof more } };
	struct sockaddr_in from;
	struct msghdr m = { .msg_iov = iov, .msg_iovlen = 2 }, with = m, named = m;
	struct mmsghdr many[2] = { { .msg_hdr = m }, { .msg_hdr = m } };
	int p[2];
	ssize_t r = -1;

	with.msg_control = control;
	with.msg_controllen = sizeof control;
	named.msg_name = &from;
	named.msg_namelen = sizeof from;
	fcntl(fd, F_SETFL, O_NONBLOCK);
	if (!strcmp(way, "read"))
		r = read(fd, &byte, 1);
	else if (!strcmp(way, "readv"))
		r = readv(fd, iov, 2);
	else if (!strcmp(way, "preadv2"))
		r = lind_import_syscall(SYS_preadv2, (uint64_t)fd, (uintptr_t)iov, 2, UINT64_MAX, 0, 0);
	else if (!strcmp(way, "recv"))
		r = recv(fd, &byte, 1, 0);
	else if (!strcmp(way, "peek"))
		r = recv(fd, &byte, 1, MSG_PEEK);
	else if (!strcmp(way, "recvmsg"))
		r = recvmsg(fd, &m, 0);
	else if (!strcmp(way, "control"))
		r = recvmsg(fd, &with, 0);
	else if (!strcmp(way, "named"))
		r = recvmsg(fd, &named, 0);
	else if (!strcmp(way, "recvmmsg"))
		r = recvmmsg(fd, many, 2, 0, NULL);
	else if (!strcmp(way, "splice") && !pipe(p))
		r = splice(fd, NULL, p[1], NULL, 8, SPLICE_F_NONBLOCK) > 0 ? read(p[0], &byte, 1) : -1;
	printf("%s %c ", way, r > 0 ? byte : '-');
}

/* PORT FAMILY: datagrams to a bound socket; each way is tried when the other side says so, by a line. */
static void datagrams(void)
{
	static const char *const ways[] = { "read", "readv", "preadv2", "recv", "peek", "recvmsg", "control", "named", "recvmmsg", "splice" };
	struct sockaddr_in in = at("127.0.0.1", atoi(arg[0]));
	struct sockaddr_in6 in6 = mapped("127.0.0.1", atoi(arg[0]));
	int six = !strcmp(arg[1], "6"), fd = fresh(six ? AF_INET6 : AF_INET, SOCK_DGRAM);
	char line[8];

	if (six ? bind(fd, AS(in6)) : bind(fd, AS(in)))
		say("bind", 1);
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		puts("ready");
		fflush(stdout);
		if (!fgets(line, sizeof line, stdin))
			exit(6);
		take(ways[i], fd);
	}
	/* What lay there before the socket was connected. */
	puts("ready");
	fflush(stdout);
	if (!fgets(line, sizeof line, stdin))
		exit(6);
	in.sin_port = htons((uint16_t)atoi(arg[2]));
	say("connect", connect(fd, AS(in)));
	take("read", fd);
	puts("");
}

static int swapped[3];

static void *swap(void *stop)
{
	while (!__atomic_load_n((int *)stop, __ATOMIC_ACQUIRE)) {
		dup2(swapped[0], swapped[2]);
		dup2(swapped[1], swapped[2]);
	}
	return NULL;
}

/* Reads a number that a thread gives to a socket and to something else in turn. */
static void race_datagrams(void)
{
	static const char *const ways[] = { "read", "readv", "recv", "recvmsg", "control", "splice" };
	struct sockaddr_in to = at("127.0.0.1", 0), from = at("127.0.0.2", 0);
	int sender = fresh(AF_INET, SOCK_DGRAM), stop = 0, pipes[2], way[2];
	socklen_t length = sizeof to;
	pthread_t thread;

	swapped[0] = fresh(AF_INET, SOCK_DGRAM);
	if (bind(swapped[0], AS(to)) || bind(sender, AS(from)) || getsockname(swapped[0], (struct sockaddr *)&to, &length) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, way) || pipe(pipes))
		exit(5);
	swapped[1] = way[0];
	swapped[2] = dup(way[0]);
	for (int i = 0; i < 2; i++)
		fcntl(swapped[i], F_SETFL, O_NONBLOCK);
	pthread_create(&thread, NULL, swap, &stop);
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		int got = 0;

		for (int round = 0; round < 10000; round++) {
			char byte = 0, control[64];
			struct iovec iov = { &byte, 1 };
			struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1 }, with = m;

			with.msg_control = control;
			with.msg_controllen = sizeof control;
			sendto(sender, "b", 1, MSG_DONTWAIT, AS(to));
			switch (i) {
			case 0: got += read(swapped[2], &byte, 1) > 0; break;
			case 1: got += readv(swapped[2], &iov, 1) > 0; break;
			case 2: got += recv(swapped[2], &byte, 1, 0) > 0; break;
			case 3: got += recvmsg(swapped[2], &m, 0) > 0; break;
			case 4: got += recvmsg(swapped[2], &with, 0) > 0; break;
			case 5: got += splice(swapped[2], NULL, pipes[1], NULL, 8, SPLICE_F_NONBLOCK) > 0; break;
			}
		}
		printf("%s %d ", ways[i], got);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
	puts("");
}

/* PATH: a message with a descriptor and an address of the network. */
static void rights_to_address(void)
{
	struct sockaddr_in in = at("127.0.0.1", atoi(arg[0]));
	char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_name = &in, .msg_namelen = sizeof in, .msg_iov = &iov, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *c = CMSG_FIRSTHDR(&m);
	int zero = 0;

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof zero);
	memcpy(CMSG_DATA(c), &zero, sizeof zero);
	say("with rights", sendmsg(fresh(AF_INET, SOCK_DGRAM), &m, 0) < 0);
	puts("");
}

/* NAME PORT: as programs do it, by getaddrinfo. */
static void by_name(void)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *found = NULL;
	int r = getaddrinfo(arg[0], arg[1], &hints, &found);

	if (r)
		printf("%s\n", gai_strerror(r));
	for (struct addrinfo *a = found; a; a = a->ai_next)
		say(arg[0], connect(fresh(a->ai_family, a->ai_socktype), a->ai_addr, a->ai_addrlen));
	puts("");
}

int main(int argc, char **argv)
{
	static const struct { const char *name; void (*run)(void); } all[] = {
		{ "reach", reach }, { "here", here }, { "binds", binds }, { "kinds", kinds }, { "options", options }, { "disconnect", disconnect },
		{ "race_address", race_address }, { "race_cages", race_cages }, { "serve", serve }, { "unixes", unixes }, { "rights", rights },
		{ "dns", dns }, { "forge", forge },
		{ "datagrams", datagrams }, { "race_datagrams", race_datagrams }, { "rights_to_address", rights_to_address }, { "by_name", by_name },
	};

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	arg = argv + 2;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (argc > 1 && !strcmp(argv[1], all[i].name))
			all[i].run();
	return 0;
}
