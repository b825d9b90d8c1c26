/* SCM_RIGHTS: descriptors travel, as new numbers for the same files; with them credentials and
 * truncation. */
#include "check.h"

#include <sys/socket.h>
#include <sys/stat.h>

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(4 * sizeof(int))];
};

static ssize_t send_fds(int to, const int *fds, size_t count)
{
	union control control = { 0 };
	struct iovec data = { "x", 1 };
	struct msghdr message = { .msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	struct cmsghdr *c = CMSG_FIRSTHDR(&message);

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(c), fds, count * sizeof(int));
	return sendmsg(to, &message, 0);
}

/* Receives up to `room` descriptors; returns how many came and what msg_flags said. */
static int receive_fds(int from, int *fds, size_t room, int flags, int *said)
{
	union control control = { 0 };
	char byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control.bytes,
		.msg_controllen = CMSG_LEN(room * sizeof(int)) };
	struct cmsghdr *c;
	int count;

	NEED(recvmsg(from, &message, flags) == 1);
	CHECK_EQ(byte, 'x');
	*said = message.msg_flags;
	if (!(c = CMSG_FIRSTHDR(&message)))
		return 0;
	CHECK_EQ(c->cmsg_level, SOL_SOCKET);
	CHECK_EQ(c->cmsg_type, SCM_RIGHTS);
	count = (int)((c->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(c), (size_t)count * sizeof(int));
	return count;
}

int main(void)
{
	struct stat a, b;
	char text[8] = { 0 };
	int pair[2], p[2], fds[4], said, fd = check_file("f", "0123456789"), before;

	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && pipe(p) == 0);
	NEED(send_fds(pair[0], (int[2]){ fd, p[1] }, 2) == 1);
	CHECK_EQ(close(p[1]), 0);
	NEED(receive_fds(pair[1], fds, 2, MSG_CMSG_CLOEXEC, &said) == 2);
	CHECK_EQ(said & MSG_CTRUNC, 0);
	CHECK(fds[0] != fd);
	CHECK_EQ(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	NEED(fstat(fd, &a) == 0 && fstat(fds[0], &b) == 0);
	CHECK_EQ(a.st_ino, b.st_ino);
	CHECK_EQ(lseek(fds[0], 4, SEEK_SET), 4);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4);
	CHECK_EQ(write(fds[1], "pipe", 4), 4);
	CHECK_EQ(read(p[0], text, 8), 4);
	CHECK_STR(text, "pipe");
	close(fds[0]);
	close(fds[1]);
	CHECK_EQ(read(p[0], text, 8), 0);

	/* Without space for all, some are dropped and msg_flags reports it. */
	NEED(send_fds(pair[0], (int[3]){ fd, fd, fd }, 3) == 1);
	CHECK_EQ(receive_fds(pair[1], fds, 1, 0, &said), 1);
	CHECK(said & MSG_CTRUNC);
	CHECK_EQ(fcntl(fds[0], F_GETFD), 0);
	close(fds[0]);
	/* Received by read, they are closed, not leaked. */
	NEED((before = dup(fd)) >= 0 && close(before) == 0);
	NEED(send_fds(pair[0], &fd, 1) == 1);
	CHECK_EQ(read(pair[1], text, 8), 1);
	CHECK_EQ(dup(fd), before);

	CHECK_ERRNO(send_fds(pair[0], (int[1]){ 0x7fff }, 1), EBADF);
	/* A socket that travels over itself. */
	NEED(send_fds(pair[0], &pair[1], 1) == 1);
	CHECK_EQ(receive_fds(pair[1], fds, 1, 0, &said), 1);
	CHECK_EQ(send(pair[0], "y", 1, 0), 1);
	CHECK_EQ(recv(fds[0], text, 8, 0), 1);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
