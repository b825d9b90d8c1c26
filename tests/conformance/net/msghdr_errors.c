/* Message headers that lie: null vectors, huge lengths, control data that does not add up. */
#include "check.h"

#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

int main(void)
{
	_Alignas(8) char control[64] = { 0 };
	char byte = 'x', text[8];
	struct iovec data = { &byte, 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
	struct cmsghdr *c = (struct cmsghdr *)(void *)control;
	struct msghdr *volatile bad = (struct msghdr *)16;
	int pair[2];

	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK_ERRNO(syscall(SYS_sendmsg, (long)pair[0], bad, 0L), EFAULT);
	CHECK_ERRNO(syscall(SYS_recvmsg, (long)pair[0], bad, 0L), EFAULT);
	message.msg_iov = (struct iovec *)16;
	CHECK_ERRNO(sendmsg(pair[0], &message, 0), EFAULT);
	message = (struct msghdr){ .msg_iov = NULL, .msg_iovlen = 0 };
	CHECK_EQ(sendmsg(pair[0], &message, 0), 0);
	data = (struct iovec){ (void *)16, 1 };
	message = (struct msghdr){ .msg_iov = &data, .msg_iovlen = 1 };
	CHECK_ERRNO(sendmsg(pair[0], &message, 0), EFAULT);
	data = (struct iovec){ &byte, 1 };

	message.msg_control = control;
	message.msg_controllen = sizeof control;
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = 1;
	CHECK_ERRNO(sendmsg(pair[0], &message, 0), EINVAL);
	c->cmsg_len = 1000;
	CHECK_ERRNO(sendmsg(pair[0], &message, 0), EINVAL);
	c->cmsg_len = CMSG_LEN(4);
	message.msg_controllen = CMSG_SPACE(4);
	*(int *)(void *)CMSG_DATA(c) = -1;
	CHECK_ERRNO(sendmsg(pair[0], &message, 0), EBADF);
	message.msg_control = (void *)16;
	CHECK_ERRNO(sendmsg(pair[0], &message, 0), EFAULT);
	/* Nothing of all that was sent. */
	CHECK_ERRNO(recv(pair[1], text, sizeof text, MSG_DONTWAIT), EAGAIN);

	CHECK_ERRNO(sendto(pair[0], "x", 1, 0, (struct sockaddr *)16, sizeof(struct sockaddr_un)), EFAULT);
	CHECK_ERRNO(send(pair[0], (void *)16, 1, 0), EFAULT);
	CHECK_EQ(send(pair[0], "left", 4, 0), 4);
	CHECK_ERRNO(recv(pair[1], (void *)16, 4, 0), EFAULT);
	return check_done();
}
