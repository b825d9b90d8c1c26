/* Names: questions and answers, also those that no resolver gave. */
#include "client.h"

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
			if ((got = have % 2 ? read(fd, answer + have, !strcmp(how, "bytes") ? 1 : 100)
					    : recv(fd, answer + have, !strcmp(how, "bytes") ? 3 : 5, 0)) <= 0)
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
	struct sockaddr_in in = at("127.0.0.3", atoi(arg[1])), resolver = at("127.0.0.1", atoi(arg[0])),
			   self = at("127.0.0.1", 0);
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
		struct msghdr m = { .msg_name = &self,
			.msg_namelen = sizeof self,
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
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
		struct msghdr m = { .msg_name = &from,
			.msg_namelen = sizeof from,
			.msg_iov = &iov,
			.msg_iovlen = 1,
			.msg_control = control,
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

/* An address of either family. */
static socklen_t any_address(const char *ip, int port, struct sockaddr_storage *to)
{
	if (strchr(ip, ':')) {
		*(struct sockaddr_in6 *)to = at6(ip, port);
		return sizeof(struct sockaddr_in6);
	}
	*(struct sockaddr_in *)to = at(ip, port);
	return sizeof(struct sockaddr_in);
}

/* Whether datagrams may go there. None is sent. */
static void reach_any(const char *ip, int port)
{
	struct sockaddr_storage to = { 0 };
	socklen_t length = any_address(ip, port, &to);
	int fd = fresh(to.ss_family, SOCK_DGRAM);

	printf("%s ", connect(fd, (struct sockaddr *)&to, length) && errno == EACCES ? "denied" : "allowed");
	close(fd);
}

/* RESOLVER PORT STEP...: `ask NAME`, `reach ADDRESS`, `connect ADDRESS`, `wait SECONDS`. */
static void steps(void)
{
	int resolver = atoi(arg[0]), port = atoi(arg[1]);

	for (; arg[2]; arg += 2) {
		const char *step = arg[2], *value = arg[3];
		struct sockaddr_storage to = { 0 };

		if (!strcmp(step, "ask"))
			ask("recv", value, resolver);
		else if (!strcmp(step, "reach"))
			reach_any(value, port);
		else if (!strcmp(step, "connect")) {
			socklen_t length = any_address(value, port, &to);

			say("connect", connect(fresh(to.ss_family, SOCK_STREAM), (struct sockaddr *)&to, length));
		} else
			sleep((unsigned)atoi(value));
	}
	puts("");
}

const struct test name_tests[] = {
	{ "steps", steps },
	{ "dns", dns },
	{ "forge", forge },
	{ "by_name", by_name },
	{ NULL, NULL },
};
