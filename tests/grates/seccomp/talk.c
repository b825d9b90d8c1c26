/* Talks to addresses that the policy of `run` allows and to others: by every call that takes
 * one. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int wrong;

static void expect(const char *what, const char *where, int allowed, int result)
{
	int denied = result < 0 && errno == EPERM;

	if (denied == allowed) {
		printf("%s to %s: %d, errno %d\n", what, where, result, errno);
		wrong++;
	}
}

static void talk(const char *where, int allowed, int family, const void *address, socklen_t length)
{
	int datagrams = socket(family, SOCK_DGRAM, 0), stream = socket(family, SOCK_STREAM | SOCK_NONBLOCK, 0);
	char byte = 'x', control[64] = { 0 };
	struct iovec iov[2] = { { &byte, 1 }, { &byte, 1 } };
	struct msghdr message = { .msg_name = (void *)address, .msg_namelen = length, .msg_iov = iov, .msg_iovlen = 2 };
	struct mmsghdr many[2] = { { .msg_hdr = message }, { .msg_hdr = message } };

	expect("connect", where, allowed, connect(stream, address, length));
	expect("sendto", where, allowed, (int)sendto(datagrams, &byte, 1, 0, address, length));
	expect("sendmsg", where, allowed, (int)sendmsg(datagrams, &message, 0));
	message.msg_control = control;
	message.msg_controllen = 0;
	expect("sendmsg with control", where, allowed, (int)sendmsg(datagrams, &message, 0));
	expect("sendmmsg", where, allowed, sendmmsg(datagrams, many, 2, 0));
	expect("connect datagrams", where, allowed, connect(datagrams, address, length));
	close(datagrams);
	close(stream);
}

static void in(const char *text, int port, int allowed)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons(port) };

	inet_pton(AF_INET, text, &a.sin_addr);
	talk(text, allowed, AF_INET, &a, sizeof a);
}

static void in6(const char *text, int port, int allowed)
{
	struct sockaddr_in6 a = { .sin6_family = AF_INET6, .sin6_port = htons(port) };

	inet_pton(AF_INET6, text, &a.sin6_addr);
	talk(text, allowed, AF_INET6, &a, sizeof a);
}

static void un(const char *path, int allowed)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	size_t n = strlen(path);

	memcpy(a.sun_path, path, n);
	if (*path == '@')
		a.sun_path[0] = 0;
	talk(path, allowed, AF_UNIX, &a, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (*path != '@')));
}

int main(void)
{
	in("127.0.0.1", 7, 1);
	in("127.9.9.9", 99, 1);
	in("127.0.0.1", 100, 0);
	in("0.0.0.0", 7, 1);
	in("0.0.0.0", 100, 0);
	in("128.0.0.1", 7, 0);
	in6("::1", 7, 1);
	in6("::1", 8, 0);
	in6("::", 7, 1);
	in6("::ffff:127.0.0.1", 7, 1);
	in6("::ffff:128.0.0.1", 7, 0);
	un("/grates-test/ok-1", 1);
	un("/grates-test/other", 0);
	un("/grates-test/ok-1/../other", 0);
	un("@mine", 1);
	un("@yours", 0);
	if (!wrong)
		puts("allowed as wanted");
	return wrong != 0;
}
