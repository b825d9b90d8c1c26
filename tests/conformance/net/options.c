/* Socket options and their shapes: buffers, lingering, credentials, short lengths. */
#include "check.h"

#include <sys/socket.h>
#include <sys/time.h>

static int option(int fd, int name)
{
	int value = -1;
	socklen_t length = sizeof value;

	CHECK_EQ(getsockopt(fd, SOL_SOCKET, name, &value, &length), 0);
	return value;
}

int main(void)
{
	struct ucred who;
	struct linger linger = { 1, 7 }, got = { 0 };
	socklen_t length;
	char byte;
	int pair[2], size = 20000, value;

	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK_EQ(option(pair[0], SO_TYPE), SOCK_STREAM);
	CHECK_EQ(option(pair[0], SO_DOMAIN), AF_UNIX);
	CHECK_EQ(option(pair[0], SO_ACCEPTCONN), 0);
	CHECK_EQ(option(pair[0], SO_ERROR), 0);
	/* The kernel doubles what is asked for. */
	CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, sizeof size), 0);
	CHECK_EQ(option(pair[0], SO_SNDBUF), 40000);
	CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
	length = sizeof got;
	CHECK_EQ(getsockopt(pair[0], SOL_SOCKET, SO_LINGER, &got, &length), 0);
	CHECK_EQ(got.l_linger, 7);
	length = sizeof who;
	CHECK_EQ(getsockopt(pair[0], SOL_SOCKET, SO_PEERCRED, &who, &length), 0);
	CHECK_EQ(length, sizeof who);
	CHECK_EQ(who.uid, geteuid());
	CHECK_EQ(who.gid, getegid());
	CHECK_EQ(who.pid, getpid());

	/* A short length gets as much of the value as fits. */
	length = 1;
	CHECK_EQ(getsockopt(pair[0], SOL_SOCKET, SO_TYPE, &byte, &length), 0);
	CHECK_EQ(length, 1);
	CHECK_EQ(byte, SOCK_STREAM);
	length = (socklen_t)-1;
	CHECK_ERRNO(getsockopt(pair[0], SOL_SOCKET, SO_TYPE, &value, &length), EINVAL);
	CHECK_ERRNO(setsockopt(pair[0], SOL_SOCKET, SO_SNDBUF, &size, 1), EINVAL);
	length = sizeof value;
	CHECK_ERRNO(getsockopt(pair[0], SOL_SOCKET, 9999, &value, &length), ENOPROTOOPT);
	CHECK_ERRNO(getsockopt(0, SOL_SOCKET, SO_TYPE, &value, &length), ENOTSOCK);
	CHECK_ERRNO(getsockopt(0x7fff, SOL_SOCKET, SO_TYPE, &value, &length), EBADF);

	/* SO_RCVTIMEO holds a struct timeval. */
	CHECK_EQ(
	    setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){ 0, 10000 }, sizeof(struct timeval)), 0);
	CHECK_ERRNO(read(pair[0], &byte, 1), EAGAIN);
	CHECK_ERRNO(socketpair(AF_INET, SOCK_STREAM, 0, pair), EOPNOTSUPP);
	return check_done();
}
