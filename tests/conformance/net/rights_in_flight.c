/* Descriptors in messages that are received late, or never: what the other end sees, and that
 * nobody runs out of them. */
#include "check.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#define ROUNDS 3000

static int pass(int socket, int fd, int count)
{
	int fds[253];
	char control[CMSG_SPACE(sizeof fds)] = { 0 };
	struct iovec data = { "x", 1 };
	struct msghdr message = { .msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE((size_t)count * sizeof(int)) };
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

	for (int i = 0; i < count; i++)
		fds[i] = fd;
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN((size_t)count * sizeof(int));
	memcpy(CMSG_DATA(rights), fds, (size_t)count * sizeof(int));
	return (int)sendmsg(socket, &message, MSG_DONTWAIT);
}

/* Receives a byte and one descriptor. */
static int get(int socket)
{
	int fd = -1;
	char byte, control[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec data = { &byte, 1 };
	struct msghdr message = {
		.msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control
	};

	CHECK_EQ(recvmsg(socket, &message, 0), 1);
	CHECK(CMSG_FIRSTHDR(&message) != NULL);
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
	return fd;
}

/* A sender that closes its socket has sent: the other side gets the descriptor, the bytes behind
 * it, and the end. */
static void check_close_after_sending(int type)
{
	char text[8];
	int pair[2], pipes[2], fd;

	CHECK_EQ(socketpair(AF_UNIX, type, 0, pair), 0);
	CHECK_EQ(pipe(pipes), 0);
	CHECK_EQ(pass(pair[0], pipes[1], 1), 1);
	CHECK_EQ(write(pair[0], "after", 5), 5);
	close(pair[0]);
	close(pipes[1]);
	/* A descriptor in flight keeps the pipe open. */
	CHECK_EQ(fcntl(pipes[0], F_SETFL, O_NONBLOCK), 0);
	CHECK_ERRNO(read(pipes[0], text, 1), EAGAIN);
	fd = get(pair[1]);
	CHECK_EQ(write(fd, "p", 1), 1);
	CHECK_EQ(read(pipes[0], text, 1), 1);
	CHECK_EQ(read(pair[1], text, sizeof text), 5);
	if (type != SOCK_DGRAM) {
		struct pollfd end = { .fd = pair[1], .events = POLLIN };

		CHECK_EQ(poll(&end, 1, 1000), 1);
		CHECK(end.revents & POLLHUP);
		CHECK_EQ(read(pair[1], text, sizeof text), 0);
		CHECK_ERRNO(send(pair[1], "x", 1, MSG_NOSIGNAL), EPIPE);
	}
	close(fd);
	close(pipes[0]);
	close(pair[1]);
}

/* A descriptor that is never received closes with the socket whose queue it is in. */
static void check_unread(int type)
{
	int pair[2], pipes[2];
	char byte;

	CHECK_EQ(socketpair(AF_UNIX, type, 0, pair), 0);
	CHECK_EQ(pipe(pipes), 0);
	CHECK_EQ(pass(pair[0], pipes[1], 1), 1);
	close(pipes[1]);
	close(pair[0]);
	close(pair[1]);
	CHECK_EQ(read(pipes[0], &byte, 1), 0);
	close(pipes[0]);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(socketpair(AF_UNIX, type, 0, pair), 0);
		CHECK_EQ(pass(pair[0], 0, 3), 1);
		close(pair[i & 1]);
		close(pair[!(i & 1)]);
	}
}

/* A reader that is always ten messages behind. */
static void check_late_reader(void)
{
	int pair[2];

	CHECK_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	for (int i = 0; i < ROUNDS; i++) {
		CHECK_EQ(pass(pair[0], 0, 1), 1);
		if (i >= 10)
			close(get(pair[1]));
	}
	close(pair[0]);
	for (int i = 0; i < 10; i++)
		close(get(pair[1]));
	close(pair[1]);
}

/* A server that answers each client with a descriptor and leaves; some clients do not read it. */
static void check_server(void)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "server" };
	int listener = socket(AF_UNIX, SOCK_STREAM, 0), status;
	pid_t child;

	unlink(at.sun_path);
	CHECK_EQ(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
	CHECK_EQ(listen(listener, 8), 0);
	if ((child = fork()) == 0) {
		for (int i = 0; i < ROUNDS; i++) {
			int client = socket(AF_UNIX, SOCK_STREAM, 0);

			CHECK_EQ(connect(client, (struct sockaddr *)&at, sizeof at), 0);
			if (i % 2)
				close(get(client));
			close(client);
		}
		_exit(0);
	}
	for (int i = 0; i < ROUNDS; i++) {
		int client = accept(listener, NULL, NULL);

		CHECK(client >= 0);
		/* It may have gone. */
		(void)pass(client, 0, 1);
		CHECK(errno != ETOOMANYREFS);
		close(client);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	close(listener);
	unlink(at.sun_path);
}

int main(void)
{
	signal(SIGPIPE, SIG_IGN);
	check_close_after_sending(SOCK_STREAM);
	check_close_after_sending(SOCK_SEQPACKET);
	check_close_after_sending(SOCK_DGRAM);
	check_unread(SOCK_STREAM);
	check_unread(SOCK_DGRAM);
	check_late_reader();
	check_server();
	return 0;
}
