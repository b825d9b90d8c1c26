/* Datagrams that come, and numbers that change while they are read from. */
#include "client.h"

/* Reads from a datagram socket in one way, at once: prints the first byte, `-` if there is
 * nothing. */
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

/* PORT FAMILY: datagrams to a bound socket; each way is tried when the other side says so, by a
 * line. */
static void datagrams(void)
{
	static const char *const ways[] = { "read", "readv", "preadv2", "recv", "peek", "recvmsg", "control", "named",
		"recvmmsg", "splice" };
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
	/* Datagrams that arrived before the socket was connected. */
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

/* Reads a number that somebody gives to a socket and to something else in turn. */
static void read_swapped(int sender, struct sockaddr_in to)
{
	static const char *const ways[] = { "read", "readv", "recv", "recvmsg", "control", "splice" };
	int pipes[2];

	if (pipe(pipes))
		exit(5);
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
			case 0:
				got += read(swapped[2], &byte, 1) > 0;
				break;
			case 1:
				got += readv(swapped[2], &iov, 1) > 0;
				break;
			case 2:
				got += recv(swapped[2], &byte, 1, 0) > 0;
				break;
			case 3:
				got += recvmsg(swapped[2], &m, 0) > 0;
				break;
			case 4:
				got += recvmsg(swapped[2], &with, 0) > 0;
				break;
			case 5:
				got += splice(swapped[2], NULL, pipes[1], NULL, 8, SPLICE_F_NONBLOCK) > 0;
				break;
			}
		}
		printf("%s %d ", ways[i], got);
	}
	puts("");
	fflush(stdout);
}

/* Makes a sender and its address; the descriptor to be read from is made, too. */
static int to_be_swapped(struct sockaddr_in *to)
{
	struct sockaddr_in from = at("127.0.0.2", 0);
	int sender = fresh(AF_INET, SOCK_DGRAM), way[2];
	socklen_t length = sizeof *to;

	*to = at("127.0.0.1", 0);
	swapped[0] = fresh(AF_INET, SOCK_DGRAM);
	if (bind(swapped[0], AS(*to)) || bind(sender, AS(from)) ||
	    getsockname(swapped[0], (struct sockaddr *)to, &length) || socketpair(AF_UNIX, SOCK_STREAM, 0, way))
		exit(5);
	swapped[1] = way[0];
	swapped[2] = dup(way[0]);
	for (int i = 0; i < 2; i++)
		fcntl(swapped[i], F_SETFL, O_NONBLOCK);
	return sender;
}

static void race_datagrams(void)
{
	struct sockaddr_in to;
	int sender = to_be_swapped(&to), stop = 0;
	pthread_t thread;

	pthread_create(&thread, NULL, swap, &stop);
	read_swapped(sender, to);
	__atomic_store_n(&stop, 1, __ATOMIC_RELEASE);
	pthread_join(thread, NULL);
}

/* Calls of a parent may act on its child. */
static int64_t dup2_in(uint64_t child, int from, int to)
{
	return lind_import_call(SYS_dup2, (int64_t)child, (uint64_t)from, child, (uint64_t)to, child, 0, child, 0,
	    child, 0, child, 0, child);
}

static void race_datagrams_of_child(void)
{
	struct sockaddr_in to;
	int sender = to_be_swapped(&to);
	uint64_t swaps = 0;
	pid_t child = fork();

	if (!child) {
		read_swapped(sender, to);
		_exit(0);
	}
	while (waitpid(child, NULL, WNOHANG) == 0) {
		swaps += dup2_in((uint64_t)child, swapped[0], swapped[2]) == swapped[2];
		swaps += dup2_in((uint64_t)child, swapped[1], swapped[2]) == swapped[2];
	}
	say("swapped", swaps < 100);
	puts("");
}

const struct test datagram_tests[] = {
	{ "datagrams", datagrams },
	{ "race_datagrams", race_datagrams },
	{ "race_datagrams_of_child", race_datagrams_of_child },
	{ NULL, NULL },
};
