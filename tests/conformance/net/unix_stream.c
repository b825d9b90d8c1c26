/* Unix stream sockets by name: bind, listen, connect, accept, names, shutdown, errors. */
#include "check.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

static struct sockaddr_un named(const char *name)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	strcpy(address.sun_path, name);
	return address;
}

static void conversation(int client, int server)
{
	char text[16] = { 0 };

	CHECK_EQ(send(client, "hello", 5, 0), 5);
	CHECK_EQ(recv(server, text, 3, 0), 3);
	CHECK_EQ(recv(server, text + 3, 8, 0), 2);
	CHECK_STR(text, "hello");
	CHECK_EQ(write(server, "peek", 4), 4);
	CHECK_EQ(recv(client, text, 4, MSG_PEEK), 4);
	CHECK_EQ(recv(client, text, 16, 0), 4);
	CHECK_ERRNO(recv(client, text, 1, MSG_DONTWAIT), EAGAIN);
	CHECK_EQ(shutdown(client, SHUT_WR), 0);
	CHECK_EQ(recv(server, text, 1, 0), 0);
	CHECK_EQ(write(server, "still", 5), 5);
	CHECK_EQ(recv(client, text, 16, 0), 5);
	CHECK_ERRNO(send(client, "x", 1, MSG_NOSIGNAL), EPIPE);
	close(server);
	CHECK_EQ(read(client, text, 1), 0);
}

int main(void)
{
	struct sockaddr_un address = named("sock"), other;
	socklen_t length = sizeof other;
	struct stat st;
	int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0), client = socket(AF_UNIX, SOCK_STREAM, 0), server;

	NEED(listener >= 0 && client >= 0);
	CHECK_EQ(fcntl(listener, F_GETFD), FD_CLOEXEC);
	CHECK_ERRNO(connect(client, (struct sockaddr *)&address, sizeof address), ENOENT);
	NEED(bind(listener, (struct sockaddr *)&address, sizeof address) == 0);
	NEED(stat("sock", &st) == 0);
	CHECK(S_ISSOCK(st.st_mode));
	CHECK_ERRNO(connect(client, (struct sockaddr *)&address, sizeof address), ECONNREFUSED);
	CHECK_ERRNO(bind(client, (struct sockaddr *)&address, sizeof address), EADDRINUSE);
	NEED(listen(listener, 5) == 0);
	NEED(connect(client, (struct sockaddr *)&address, sizeof address) == 0);
	CHECK_ERRNO(connect(client, (struct sockaddr *)&address, sizeof address), EISCONN);
	NEED((server = accept4(listener, (struct sockaddr *)&other, &length, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0);
	CHECK_EQ(length, offsetof(struct sockaddr_un, sun_path));
	CHECK_EQ(fcntl(server, F_GETFD), FD_CLOEXEC);
	CHECK(fcntl(server, F_GETFL) & O_NONBLOCK);
	length = sizeof other;
	CHECK_EQ(getpeername(client, (struct sockaddr *)&other, &length), 0);
	CHECK_EQ(other.sun_family, AF_UNIX);
	CHECK_STR(other.sun_path, "sock");
	length = sizeof other;
	CHECK_EQ(getsockname(listener, (struct sockaddr *)&other, &length), 0);
	CHECK_STR(other.sun_path, "sock");
	CHECK_ERRNO(getpeername(listener, (struct sockaddr *)&other, &length), ENOTCONN);
	CHECK_ERRNO(open("sock", O_RDWR), ENXIO);
	conversation(client, server);

	CHECK_EQ(fcntl(listener, F_SETFL, O_NONBLOCK), 0);
	CHECK_ERRNO(accept(listener, NULL, NULL), EAGAIN);
	CHECK_ERRNO(accept(client, NULL, NULL), EINVAL);
	CHECK_ERRNO(socket(AF_UNIX, 99, 0), EINVAL);
	CHECK_ERRNO(socket(12345, SOCK_STREAM, 0), EAFNOSUPPORT);
	CHECK_ERRNO(listen(0x7fff, 1), EBADF);
	server = check_file("file", "");
	CHECK_ERRNO(listen(server, 1), ENOTSOCK);
	close(listener);
	CHECK_EQ(unlink("file"), 0);
	CHECK_EQ(unlink("sock"), 0);
	return check_done();
}
