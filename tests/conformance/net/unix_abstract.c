/* Names without a file, of every possible length: the sockets that they reach, and the addresses
 * that are returned. */
#include "check.h"
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define LONGEST 107

static struct sockaddr_un address;

/* A name of `length` bytes; `last` tells two apart. Returns the address's length. Of short ones
 * there are few: alone() keeps others from them. */
static socklen_t name(int length, char last)
{
	char text[LONGEST + 1];

	memset(&address, 0, sizeof address);
	address.sun_family = AF_UNIX;
	snprintf(text, sizeof text, "%0107d", (int)getpid());
	memcpy(address.sun_path + 1, text + LONGEST - length, length);
	address.sun_path[length] = last;
	return offsetof(struct sockaddr_un, sun_path) + 1 + length;
}

/* `ask` says the name that `address` has. */
static void told(int (*ask)(int, struct sockaddr *, socklen_t *), int fd, socklen_t length)
{
	struct sockaddr_un got;
	socklen_t len = sizeof got;

	memset(&got, 0xee, sizeof got);
	CHECK_EQ(ask(fd, (void *)&got, &len), 0);
	CHECK_EQ(len, length);
	CHECK(!memcmp(&got, &address, length));
}

static int first(int fd, struct sockaddr *from, socklen_t *length)
{
	char byte;

	return recvfrom(fd, &byte, 1, 0, from, length) == 1 ? 0 : -1;
}

static void check_length(int length)
{
	int server = socket(AF_UNIX, SOCK_STREAM, 0), client = socket(AF_UNIX, SOCK_STREAM, 0), end;
	int to = socket(AF_UNIX, SOCK_DGRAM, 0), from = socket(AF_UNIX, SOCK_DGRAM, 0);
	struct sockaddr_un none;
	socklen_t len = name(length, 'a'), other = sizeof none;

	NEED(server >= 0 && client >= 0 && to >= 0 && from >= 0);
	CHECK_ERRNO(connect(client, (void *)&address, len), ECONNREFUSED);
	CHECK_EQ(bind(server, (void *)&address, len), 0);
	told(getsockname, server, len);
	CHECK_EQ(listen(server, 2), 0);
	CHECK_ERRNO(bind(client, (void *)&address, len), EADDRINUSE);
	told(getsockname, server, len);
	CHECK_EQ(connect(client, (void *)&address, len), 0);
	told(getpeername, client, len);
	NEED((end = accept(server, (void *)&none, &other)) >= 0);
	CHECK_EQ(other, sizeof none.sun_family);
	told(getsockname, end, len);
	close(client);
	client = socket(AF_UNIX, SOCK_STREAM, 0);
	/* Another name, however little it differs; it is free. */
	len = name(length, 'b');
	CHECK_ERRNO(connect(client, (void *)&address, len), ECONNREFUSED);
	CHECK_EQ(bind(client, (void *)&address, len), 0);
	told(getsockname, client, len);
	close(client), close(end), close(server);

	/* Datagrams say who sent them. */
	len = name(length, 'c');
	CHECK_EQ(bind(to, (void *)&address, len), 0);
	CHECK_EQ(connect(from, (void *)&address, len), 0);
	told(getpeername, from, len);
	len = name(length, 'd');
	CHECK_EQ(bind(from, (void *)&address, len), 0);
	CHECK_EQ(send(from, "x", 1, 0), 1);
	told(first, to, len);
	CHECK_EQ(sendto(to, "x", 1, 0, (void *)&address, len), 1);
	close(to), close(from);
	/* Free again when the socket is gone. */
	to = socket(AF_UNIX, SOCK_DGRAM, 0);
	/* In a cage it was seen, seldom, to be taken for a moment longer. */
	for (int i = 0; bind(to, (void *)&address, len) && i < 1000; i++)
		usleep(1000);
	told(getsockname, to, len);
	close(to);
}

/* One of these tests at a time in the whole namespace, which the host and all cages share: the
 * holder of this name goes on. */
static void alone(void)
{
	static const char lock[] = "\0lind unix_abstract";
	struct sockaddr_un one = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_DGRAM, 0);

	memcpy(one.sun_path, lock, sizeof lock - 1);
	while (bind(fd, (void *)&one, offsetof(struct sockaddr_un, sun_path) + sizeof lock - 1) && errno == EADDRINUSE)
		usleep(1000);
}

int main(void)
{
	int fd;

	alone();
	for (int length = 1; length <= LONGEST; length += length < 90 && length > 10 ? 10 : 1)
		check_length(length);
	fd = socket(AF_UNIX, SOCK_STREAM, 0);
	name(LONGEST, 'a');
	CHECK_ERRNO(bind(fd, (void *)&address, sizeof address + 1), EINVAL);
	CHECK_ERRNO(connect(fd, (void *)&address, sizeof address + 1), EINVAL);
	close(fd);
	return check_done();
}
