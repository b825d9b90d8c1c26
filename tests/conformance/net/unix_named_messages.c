/* Messages to unix sockets by name: sendmsg and sendmmsg, with and without descriptors, and their
 * senders' addresses. */
#include "check.h"
#include <fcntl.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static struct sockaddr_un named(const char *path)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	strcpy(a.sun_path, path);
	return a;
}

static int bound(const char *path)
{
	struct sockaddr_un a = named(path);
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	NEED(fd >= 0 && bind(fd, (void *)&a, sizeof a) == 0);
	return fd;
}

static ssize_t send_to(int fd, const char *path, int passed)
{
	struct sockaddr_un a = named(path);
	struct iovec iov[2] = { { "one", 3 }, { "two", 3 } };
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} control = { .head = {
			  .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct msghdr m = { .msg_name = &a, .msg_namelen = sizeof a, .msg_iov = iov, .msg_iovlen = 2 };

	if (passed >= 0) {
		memcpy(CMSG_DATA(&control.head), &passed, sizeof passed);
		m.msg_control = &control;
		m.msg_controllen = sizeof control;
	}
	return sendmsg(fd, &m, 0);
}

/* The descriptor that came, or -1. */
static int received(int fd, const char *text, const char *from)
{
	struct sockaddr_un a = { 0 };
	char bytes[20] = { 0 };
	struct iovec iov = { bytes, sizeof bytes - 1 };
	char control[CMSG_SPACE(sizeof(int))] __attribute__((aligned(8)));
	struct msghdr m = { .msg_name = &a,
		.msg_namelen = sizeof a,
		.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = sizeof control };
	int got = -1;

	CHECK_EQ(recvmsg(fd, &m, MSG_DONTWAIT), (long)strlen(text));
	CHECK_STR(bytes, text);
	CHECK_STR(m.msg_namelen > offsetof(struct sockaddr_un, sun_path) ? a.sun_path : "", from);
	if (m.msg_controllen)
		memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof got);
	return got;
}

int main(void)
{
	int server = bound("server"), client = bound("client"), file = open("file", O_RDWR | O_CREAT, 0600), got;
	struct sockaddr_un to = named("server");
	struct iovec iov = { "many", 4 };
	struct mmsghdr many[2] = { 0 };
	char byte = 0;

	CHECK_EQ(send_to(client, "server", -1), 6);
	CHECK_EQ(received(server, "onetwo", "client"), -1);
	CHECK(write(file, "x", 1) == 1);
	CHECK_EQ(send_to(client, "./server", file), 6);
	got = received(server, "onetwo", "client");
	CHECK(got >= 0 && pread(got, &byte, 1, 0) == 1 && byte == 'x');
	close(got);
	for (int i = 0; i < 2; i++)
		many[i].msg_hdr =
		    (struct msghdr){ .msg_name = &to, .msg_namelen = sizeof to, .msg_iov = &iov, .msg_iovlen = 1 };
	CHECK_EQ(sendmmsg(client, many, 2, 0), 2);
	for (int i = 0; i < 2; i++)
		CHECK_EQ(received(server, "many", "client"), -1);
	CHECK_ERRNO(send_to(client, "nobody", -1), ENOENT);
	CHECK_ERRNO(send_to(client, "nobody", file), ENOENT);
	CHECK_ERRNO(send_to(client, "file", -1), ECONNREFUSED);
	close(server);
	CHECK_ERRNO(send_to(client, "server", -1), ECONNREFUSED);
	close(client);
	CHECK(unlink("server") == 0 && unlink("client") == 0 && unlink("file") == 0);
	return check_done();
}
