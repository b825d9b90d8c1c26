/* SO_PASSCRED: every message says who sent it. */
#include "check.h"

#include <sys/socket.h>
#include <sys/uio.h>

int main(void)
{
	_Alignas(8) char control[128];
	char byte = 0;
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
	};
	struct cmsghdr *c;
	struct ucred who;
	int pair[2], on = 1;

	NEED(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair) == 0);
	CHECK_EQ(setsockopt(pair[1], SOL_SOCKET, SO_PASSCRED, &on, sizeof on), 0);
	CHECK_EQ(send(pair[0], "x", 1, 0), 1);
	NEED(recvmsg(pair[1], &message, 0) == 1);
	NEED((c = CMSG_FIRSTHDR(&message)));
	CHECK_EQ(c->cmsg_level, SOL_SOCKET);
	CHECK_EQ(c->cmsg_type, SCM_CREDENTIALS);
	CHECK_EQ(c->cmsg_len, CMSG_LEN(sizeof who));
	memcpy(&who, CMSG_DATA(c), sizeof who);
	CHECK_EQ(who.pid, getpid());
	CHECK_EQ(who.uid, getuid());

	/* Sent along, one's own are allowed. */
	who = (struct ucred){ getpid(), getuid(), getgid() };
	message = (struct msghdr){
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = CMSG_SPACE(sizeof who)
	};
	c = CMSG_FIRSTHDR(&message);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_CREDENTIALS;
	c->cmsg_len = CMSG_LEN(sizeof who);
	memcpy(CMSG_DATA(c), &who, sizeof who);
	CHECK_EQ(sendmsg(pair[0], &message, 0), 1);
	message.msg_controllen = sizeof control;
	CHECK_EQ(recvmsg(pair[1], &message, 0), 1);
	CHECK_EQ(message.msg_flags & MSG_CTRUNC, 0);
	/* Without space for them: they are dropped, and msg_flags reports it. */
	CHECK_EQ(send(pair[0], "y", 1, 0), 1);
	message.msg_control = NULL;
	message.msg_controllen = 0;
	CHECK_EQ(recvmsg(pair[1], &message, 0), 1);
	CHECK(message.msg_flags & MSG_CTRUNC);
	return check_done();
}
