/*
 * passed IN [threads]: descriptors that go in messages, from the directory IN and from elsewhere,
 * over sockets of both kinds, in one process and to a child. The grates inside refuse pwrite: what
 * was inside must be so where it arrives, and what was not must not.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST 4

static const char *in;
static int inside, outside;

static void fail(const char *what)
{
	printf("%s: %s\n", what, strerror(errno));
	exit(1);
}

static void need(int ok, const char *what)
{
	if (!ok)
		fail(what);
}

/* A pair; its first end is inside if it was connected by a name in IN. */
static void make_pair(int pair[2], int within)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int listening;

	if (!within) {
		need(!socketpair(AF_UNIX, SOCK_STREAM, 0, pair), "socketpair");
		return;
	}
	snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", in);
	need((listening = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0, "socket");
	need(!bind(listening, (struct sockaddr *)&name, sizeof name) && !listen(listening, 1), "bind");
	need((pair[0] = socket(AF_UNIX, SOCK_STREAM, 0)) >= 0, "socket");
	need(!connect(pair[0], (struct sockaddr *)&name, sizeof name), "connect");
	need((pair[1] = accept(listening, NULL, NULL)) >= 0, "accept");
	close(listening);
	unlink(name.sun_path);
}

static ssize_t send_fds(int socket, const int *fds, int count, size_t claimed)
{
	_Alignas(8) char room[CMSG_SPACE(MOST * sizeof(int))] = { 0 };
	struct iovec byte = { "x", 1 };
	struct msghdr m = { .msg_iov = &byte,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = claimed ? claimed : CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(h), fds, count * sizeof *fds);
	return sendmsg(socket, &m, 0);
}

/* With room for so many: how many came. */
static int receive_fds(int socket, int *fds, int room_for, int flags, int *truncated)
{
	_Alignas(8) char room[CMSG_SPACE(MOST * sizeof(int))], byte;
	struct iovec to = { &byte, 1 };
	struct msghdr m = { .msg_iov = &to,
		.msg_iovlen = 1,
		.msg_control = room,
		.msg_controllen = room_for ? CMSG_LEN(room_for * sizeof(int)) : 0 };
	struct cmsghdr *h;
	int count;

	need(recvmsg(socket, &m, flags) == 1, "recvmsg");
	*truncated = !!(m.msg_flags & MSG_CTRUNC);
	if (!(h = CMSG_FIRSTHDR(&m)) || h->cmsg_type != SCM_RIGHTS)
		return 0;
	count = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int);
	memcpy(fds, CMSG_DATA(h), count * sizeof *fds);
	return count;
}

static void check(int fd, int is_inside, const char *what)
{
	errno = 0;
	if (is_inside ? pwrite(fd, "x", 1, 0) != -1 || errno != EPERM : pwrite(fd, "x", 1, 0) != 1)
		fail(what);
	close(fd);
}

/* Receives a message that was sent as (in, out, in): first with MSG_PEEK, then with room for
 * `room_for`. */
static void receive_three(int socket, int room_for, const char *what)
{
	int fds[MOST], truncated, count = receive_fds(socket, fds, 3, MSG_PEEK, &truncated);

	need(count == 3 && !truncated, "looked at");
	for (int i = 0; i < count; i++)
		check(fds[i], i != 1, what);
	count = receive_fds(socket, fds, room_for, 0, &truncated);
	need(count == room_for && truncated == (room_for < 3), "received");
	for (int i = 0; i < count; i++)
		check(fds[i], i != 1, what);
}

/* A pair of which it is the end inside, or the other one, that sends. */
static void over(int within, int from, int forked, const char *what)
{
	const int three[] = { inside, outside, inside };
	int pair[2], status = 0;
	pid_t child = 0;

	make_pair(pair, within);
	if (forked && !(child = fork())) {
		for (int room = 3; room >= 0; room--)
			receive_three(pair[!from], room, what);
		fflush(stdout);
		_exit(0);
	}
	for (int room = 3; room >= 0; room--) {
		need(send_fds(pair[from], three, 3, 0) == 1, "sendmsg");
		if (!forked)
			receive_three(pair[!from], room, what);
	}
	if (forked)
		need(waitpid(child, &status, 0) == child && !status, what);
	close(pair[0]);
	close(pair[1]);
}

/* More than what is in the message, and numbers that are none. */
static void wrong(void)
{
	int pair[2], none[2] = { outside, 4000 };

	make_pair(pair, 0);
	need(send_fds(pair[0], &inside, 1, 4000) == -1 && errno == EINVAL, "a length that is too much");
	need(send_fds(pair[0], &inside, 1, 0xfffffff0u) == -1 && errno == EINVAL, "a length that is far too much");
	need(send_fds(pair[0], none, 2, 0) == -1 && errno == EBADF, "a number that is none");
	close(pair[0]);
	close(pair[1]);
}

static void *sleeps(void *unused)
{
	for (;;)
		pause();
	return unused;
}

int main(int argc, char **argv)
{
	char name[128];
	pthread_t thread;

	in = argv[1];
	snprintf(name, sizeof name, "%s/file", in);
	need((inside = open(name, O_RDWR | O_CREAT, 0600)) >= 0, "open");
	need((outside = open("/dev/null", O_RDWR)) >= 0, "open");
	if (argc > 2)
		need(!pthread_create(&thread, NULL, sleeps, NULL), "pthread_create");
	wrong();
	for (int forked = 0; forked < 2; forked++) {
		over(0, 0, forked, "over a socket outside");
		over(1, 0, forked, "over a socket inside");
		over(1, 1, forked, "to a socket inside");
	}
	puts("as they were");
	return 0;
}
