/* TCP over the loopback of IPv4 and IPv6, in one process. */
#include "check.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static union address loopback(int family)
{
	union address a = { 0 };

	a.any.sa_family = (sa_family_t)family;
	if (family == AF_INET)
		a.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		a.v6.sin6_addr = in6addr_loopback;
	return a;
}

static void options(int fd)
{
	int on = 1, value = -1;
	socklen_t length = sizeof value;

	CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &length), 0);
	CHECK_EQ(value, SOCK_STREAM);
	CHECK_EQ(length, sizeof value);
	CHECK_EQ(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), 0);
	CHECK_EQ(getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &length), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on), 0);
	CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &length), 0);
	CHECK_EQ(value, 1);
	CHECK_EQ(getsockopt(fd, SOL_SOCKET, SO_ERROR, &value, &length), 0);
	CHECK_EQ(value, 0);
	CHECK_ERRNO(setsockopt(fd, IPPROTO_TCP, 9999, &on, sizeof on), ENOPROTOOPT);
}

static void stream(int family, socklen_t size)
{
	union address a = loopback(family), peer;
	socklen_t length = size;
	char text[16] = { 0 };
	int on = 1, listener = socket(family, SOCK_STREAM, 0), client = socket(family, SOCK_STREAM, 0), server, second;

	NEED(listener >= 0 && client >= 0);
	CHECK_EQ(setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
	if (bind(listener, &a.any, size)) {
		CHECK(family == AF_INET6 && errno == EADDRNOTAVAIL);
		return;
	}
	NEED(listen(listener, 5) == 0 && getsockname(listener, &a.any, &length) == 0);
	CHECK_EQ(length, size);
	CHECK(a.v4.sin_port != 0);
	NEED((second = socket(family, SOCK_STREAM, 0)) >= 0);
	CHECK_ERRNO(bind(second, &a.any, size), EADDRINUSE);
	NEED(connect(client, &a.any, size) == 0);
	length = sizeof peer;
	NEED((server = accept(listener, &peer.any, &length)) >= 0);
	CHECK_EQ(peer.any.sa_family, family);
	CHECK_EQ(length, size);
	options(client);
	CHECK_EQ(write(client, "ping", 4), 4);
	CHECK_EQ(read(server, text, sizeof text), 4);
	CHECK_EQ(send(server, "pong", 4, MSG_MORE), 4);
	CHECK_EQ(send(server, "!", 1, 0), 1);
	CHECK_EQ(recv(client, text, 5, MSG_WAITALL), 5);
	CHECK_STR(text, "pong!");
	CHECK_EQ(shutdown(client, SHUT_WR), 0);
	CHECK_EQ(read(server, text, 1), 0);
	close(server);
	CHECK_EQ(read(client, text, 1), 0);
	close(client);
	/* Nobody listens any more. */
	close(listener);
	CHECK_ERRNO(connect(second, &a.any, size), ECONNREFUSED);
	close(second);
}

static void nonblocking(void)
{
	union address a = loopback(AF_INET);
	socklen_t length = sizeof a.v4;
	int error = -1, listener = socket(AF_INET, SOCK_STREAM, 0);
	int client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	NEED(bind(listener, &a.any, sizeof a.v4) == 0 && listen(listener, 1) == 0);
	NEED(getsockname(listener, &a.any, &length) == 0);
	if (connect(client, &a.any, sizeof a.v4))
		CHECK_EQ(errno, EINPROGRESS);
	CHECK_EQ(poll(&(struct pollfd){ client, POLLOUT, 0 }, 1, 5000), 1);
	length = sizeof error;
	CHECK_EQ(getsockopt(client, SOL_SOCKET, SO_ERROR, &error, &length), 0);
	CHECK_EQ(error, 0);
	CHECK_ERRNO(read(client, &error, 1), EAGAIN);
	close(client);
	close(listener);
}

int main(void)
{
	stream(AF_INET, sizeof(struct sockaddr_in));
	stream(AF_INET6, sizeof(struct sockaddr_in6));
	nonblocking();
	CHECK_ERRNO(send(socket(AF_INET, SOCK_STREAM, 0), "x", 1, MSG_NOSIGNAL), EPIPE);
	CHECK_ERRNO(recv(socket(AF_INET, SOCK_STREAM, 0), (char[1]){ 0 }, 1, 0), ENOTCONN);
	return check_done();
}
