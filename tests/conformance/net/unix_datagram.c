/* Unix datagrams: boundaries, addresses, truncation, and sequenced packets. */
#include "check.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

static int bound(const char *name, struct sockaddr_un *address)
{
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	*address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	strcpy(address->sun_path, name);
	NEED(fd >= 0 && bind(fd, (struct sockaddr *)address, sizeof *address) == 0);
	return fd;
}

static void sequenced(void)
{
	char text[8] = { 0 };
	int pair[2];

	NEED(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	CHECK_EQ(send(pair[0], "one", 3, 0), 3);
	CHECK_EQ(send(pair[0], "three", 5, 0), 5);
	CHECK_EQ(recv(pair[1], text, 2, 0), 2);
	CHECK_EQ(recv(pair[1], text, 8, 0), 5);
	CHECK_EQ(memcmp(text, "three", 5), 0);
	close(pair[0]);
	CHECK_EQ(recv(pair[1], text, 8, 0), 0);
	close(pair[1]);
}

int main(void)
{
	struct sockaddr_un a_name, b_name, from;
	socklen_t length = sizeof from;
	char text[16] = { 0 };
	int a = bound("a", &a_name), b = bound("b", &b_name), pair[2];

	CHECK_EQ(sendto(a, "first", 5, 0, (struct sockaddr *)&b_name, sizeof b_name), 5);
	CHECK_EQ(sendto(a, "", 0, 0, (struct sockaddr *)&b_name, sizeof b_name), 0);
	CHECK_EQ(sendto(a, "third one", 9, 0, (struct sockaddr *)&b_name, sizeof b_name), 9);
	CHECK_EQ(recvfrom(b, text, sizeof text, 0, (struct sockaddr *)&from, &length), 5);
	CHECK_STR(text, "first");
	CHECK_STR(from.sun_path, "a");
	CHECK_EQ(length, offsetof(struct sockaddr_un, sun_path) + 2);
	CHECK_EQ(recv(b, text, sizeof text, 0), 0);
	CHECK_EQ(recv(b, text, 4, MSG_TRUNC), 9);
	CHECK_ERRNO(recv(b, text, 4, MSG_DONTWAIT), EAGAIN);

	NEED(connect(a, (struct sockaddr *)&b_name, sizeof b_name) == 0);
	CHECK_EQ(write(a, "connected", 9), 9);
	CHECK_EQ(read(b, text, sizeof text), 9);
	CHECK_EQ(unlink("b"), 0);
	close(b);
	CHECK_ERRNO(write(a, "x", 1), ECONNREFUSED);
	close(a);
	CHECK_EQ(unlink("a"), 0);

	/* A name without a file: it begins with NUL and its length counts. */
	NEED((a = socket(AF_UNIX, SOCK_DGRAM, 0)) >= 0);
	a_name = (struct sockaddr_un){ .sun_family = AF_UNIX };
	snprintf(a_name.sun_path + 1, 64, "check-%d-%p", getpid(), (void *)&a_name);
	length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a_name.sun_path + 1));
	if (bind(a, (struct sockaddr *)&a_name, length) == 0) {
		socklen_t got = sizeof from;

		CHECK_EQ(getsockname(a, (struct sockaddr *)&from, &got), 0);
		CHECK_EQ(got, length);
		CHECK_EQ(memcmp(from.sun_path, a_name.sun_path, length - offsetof(struct sockaddr_un, sun_path)), 0);
	} else {
		/* A sandbox may refuse names that belong to no directory. */
		CHECK(errno == EPERM || errno == EACCES);
	}
	close(a);
	NEED(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0, pair) == 0);
	CHECK_ERRNO(recv(pair[0], text, 1, 0), EAGAIN);
	close(pair[0]);
	close(pair[1]);
	sequenced();
	return check_done();
}
