/* UDP over the loopback of IPv4. */
#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/time.h>

static int bound(struct sockaddr_in *address)
{
	socklen_t length = sizeof *address;
	int fd = socket(AF_INET, SOCK_DGRAM, 0);

	*address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	NEED(fd >= 0 && bind(fd, (struct sockaddr *)address, sizeof *address) == 0);
	NEED(getsockname(fd, (struct sockaddr *)address, &length) == 0);
	return fd;
}

int main(void)
{
	struct sockaddr_in a_name, b_name, from;
	socklen_t length = sizeof from;
	char text[16] = { 0 };
	struct timeval wait = { 0, 20000 };
	int a = bound(&a_name), b = bound(&b_name), waiting = -1;

	CHECK_EQ(sendto(a, "datagram", 8, 0, (struct sockaddr *)&b_name, sizeof b_name), 8);
	CHECK_EQ(poll(&(struct pollfd){ b, POLLIN, 0 }, 1, 5000), 1);
	CHECK_EQ(ioctl(b, FIONREAD, &waiting), 0);
	CHECK_EQ(waiting, 8);
	CHECK_EQ(recvfrom(b, text, sizeof text, 0, (struct sockaddr *)&from, &length), 8);
	CHECK_STR(text, "datagram");
	CHECK_EQ(from.sin_port, a_name.sin_port);
	CHECK_EQ(from.sin_addr.s_addr, a_name.sin_addr.s_addr);
	CHECK_EQ(length, sizeof from);

	NEED(connect(b, (struct sockaddr *)&a_name, sizeof a_name) == 0);
	length = sizeof from;
	CHECK_EQ(getpeername(b, (struct sockaddr *)&from, &length), 0);
	CHECK_EQ(from.sin_port, a_name.sin_port);
	CHECK_EQ(send(b, "", 0, 0), 0);
	CHECK_EQ(recv(a, text, sizeof text, 0), 0);
	/* SO_RCVTIMEO ends a wait. */
	CHECK_EQ(setsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait), 0);
	CHECK_ERRNO(recv(a, text, sizeof text, 0), EAGAIN);
	length = sizeof wait;
	wait = (struct timeval){ 0 };
	CHECK_EQ(getsockopt(a, SOL_SOCKET, SO_RCVTIMEO, &wait, &length), 0);
	CHECK(wait.tv_sec == 0 && wait.tv_usec >= 20000 && wait.tv_usec < 40000);
	CHECK_EQ(length, sizeof wait);
	/* A socket that was never bound has a name once it has sent. */
	CHECK_ERRNO(sendto(socket(AF_INET, SOCK_DGRAM, 0), "x", 1, 0, NULL, 0), EDESTADDRREQ);
	close(a);
	close(b);
	return check_done();
}
