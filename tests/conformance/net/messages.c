/* sendmsg, recvmsg, sendmmsg, recvmmsg: vectors, flags, many at once. */
#include "check.h"

#include <sys/socket.h>
#include <time.h>

int main(void)
{
	char a[4] = { 0 }, b[8] = { 0 }, many[3][8] = { { 0 } };
	struct iovec out[2] = { { "abc", 3 }, { "defgh", 5 } }, in[2] = { { a, 3 }, { b, 8 } }, slots[3];
	struct msghdr message = { .msg_iov = out, .msg_iovlen = 2 };
	struct mmsghdr batch[3];
	struct timespec timeout;
	int pair[2];

	NEED(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	CHECK_EQ(sendmsg(pair[0], &message, 0), 8);
	message = (struct msghdr){ .msg_iov = in, .msg_iovlen = 2 };
	CHECK_EQ(recvmsg(pair[1], &message, 0), 8);
	CHECK_EQ(memcmp(a, "abc", 3), 0);
	CHECK_EQ(memcmp(b, "defgh", 5), 0);
	CHECK_EQ(message.msg_flags & MSG_TRUNC, 0);
	CHECK_EQ(send(pair[0], "0123456789abcdef", 16, 0), 16);
	CHECK_EQ(recvmsg(pair[1], &message, 0), 11);
	CHECK(message.msg_flags & MSG_TRUNC);

	memset(batch, 0, sizeof batch);
	for (int i = 0; i < 3; i++) {
		batch[i].msg_hdr.msg_iov = &out[i % 2];
		batch[i].msg_hdr.msg_iovlen = 1;
	}
	CHECK_EQ(sendmmsg(pair[0], batch, 3, 0), 3);
	CHECK_EQ(batch[1].msg_len, 5);
	memset(batch, 0, sizeof batch);
	for (int i = 0; i < 3; i++) {
		slots[i] = (struct iovec){ many[i], 8 };
		batch[i].msg_hdr.msg_iov = &slots[i];
		batch[i].msg_hdr.msg_iovlen = 1;
	}
	memset(&timeout, 0xff, sizeof timeout);
	timeout.tv_sec = 1, timeout.tv_nsec = 0;
	CHECK_EQ(recvmmsg(pair[1], batch, 3, 0, &timeout), 3);
	CHECK_EQ(batch[0].msg_len, 3);
	CHECK_EQ(batch[1].msg_len, 5);
	CHECK_STR(many[0], "abc");
	CHECK_STR(many[1], "defgh");
	CHECK_STR(many[2], "abc");
	CHECK_EQ(send(pair[0], "x", 1, 0), 1);
	CHECK_EQ(recvmmsg(pair[1], batch, 3, MSG_DONTWAIT, NULL), 1);
	CHECK_ERRNO(recvmmsg(pair[1], batch, 3, MSG_DONTWAIT, NULL), EAGAIN);
	CHECK_ERRNO(sendmsg(0x7fff, &message, 0), EBADF);
	message.msg_iovlen = 100000;
	CHECK_ERRNO(sendmsg(pair[0], &message, 0), EMSGSIZE);
	return check_done();
}
