/* Makes the calls of programs on the network: `client WHAT [ARGS]`. Prints errnos, 0 for what
 * worked. Here is what connects and binds. */
#include "client.h"

char **arg;

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
	union {
		char bytes[64];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_name = &in,
		.msg_namelen = sizeof in,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control.bytes };
	struct cmsghdr *c;

	say("device", setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "lo", 3));
	say("options", setsockopt(fd, IPPROTO_IP, IP_OPTIONS, "\x83\7\4\x7f\0\0\1", 8));
	say("rthdr", setsockopt(six, IPPROTO_IPV6, IPV6_RTHDR, "", 0));
	say("join",
	    setsockopt(fd, IPPROTO_IP, IP_ADD_MEMBERSHIP,
		&(struct ip_mreq){ { inet_addr("239.83.69.67") }, { htonl(INADDR_LOOPBACK) } },
		sizeof(struct ip_mreq)));
	say("join6",
	    setsockopt(six, IPPROTO_IPV6, IPV6_JOIN_GROUP, &(struct ipv6_mreq){ { { { 0xff, 0x15, [15] = 1 } } }, 1 },
		sizeof(struct ipv6_mreq)));
	say("source", setsockopt(fd, IPPROTO_IP, IP_ADD_SOURCE_MEMBERSHIP, "239.83.69.6", 12));
	say("unknown", setsockopt(fd, IPPROTO_IP, 200, &one, sizeof one));
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

/* Two addresses, of which each comes and goes in parts: port and host may be of one each. */
static void *move(void *addresses)
{
	const struct sockaddr_in *two = addresses;

	while (!done)
		for (int i = 0; i < 2; i++) {
			__atomic_store_n(&moving.sin_addr.s_addr, two[i].sin_addr.s_addr, __ATOMIC_RELAXED);
			__atomic_store_n(&moving.sin_port, two[i].sin_port, __ATOMIC_RELAXED);
		}
	return NULL;
}

/* ALLOWED PORT DENIED PORT: the address changes under the call. The denied one counts what it
 * gets. */
static void race_address(void)
{
	struct sockaddr_in two[2] = { at(arg[0], atoi(arg[1])), at(arg[2], atoi(arg[3])) };
	struct iovec iov = { "x", 1 };
	struct msghdr m = { .msg_name = &moving, .msg_namelen = sizeof moving, .msg_iov = &iov, .msg_iovlen = 1 };
	int udp = fresh(AF_INET, SOCK_DGRAM), worked = 0, denied = 0;
	pthread_t t;

	moving = two[0];
	pthread_create(&t, NULL, move, two);
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
		printf("%s %u\n", one < 0 ? strerror(errno) : inet_ntop(AF_INET, &peer.sin_addr, text, sizeof text),
		    (unsigned)length);
		close(one);
	}
}

static const struct test stream_tests[] = {
	{ "reach", reach },
	{ "here", here },
	{ "binds", binds },
	{ "kinds", kinds },
	{ "options", options },
	{ "disconnect", disconnect },
	{ "race_address", race_address },
	{ "race_cages", race_cages },
	{ "serve", serve },
	{ NULL, NULL },
};

int main(int argc, char **argv)
{
	static const struct test *const all[] = { stream_tests, datagram_tests, unix_tests, name_tests };

	setvbuf(stdout, NULL, _IOLBF, 0);
	signal(SIGPIPE, SIG_IGN);
	arg = argv + 2;
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (const struct test *t = all[i]; argc > 1 && t->name; t++)
			if (!strcmp(argv[1], t->name))
				t->run();
	return 0;
}
