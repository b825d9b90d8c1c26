/* Descriptors that come in without a path. Started outside, it opens files for writing, starts
 * itself behind readonly, and sends it more; inside, those that write to a protected file must not
 * have come. argv: --allow's directory, then `inside` for the inner one. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define INHERITED        20
#define SOCKET           21
#define HIGH             1000
#define IS(what, wanted) is(#what, (long)(what), (long)(wanted), __LINE__)

static int wrong;

static void is(const char *what, long got, long wanted, int line)
{
	if (got != wanted) {
		printf("%d: %s: expected %ld, got %ld (errno %d)\n", line, what, wanted, got, errno);
		wrong = 1;
	}
}

static void send_files(int socket, const int *fds, int count)
{
	char control[CMSG_SPACE(4 * sizeof(int))] = { 0 }, byte = 'x';
	struct iovec data = { &byte, 1 };
	struct msghdr m = { .msg_iov = &data,
		.msg_iovlen = 1,
		.msg_control = control,
		.msg_controllen = CMSG_SPACE(count * sizeof(int)) };
	struct cmsghdr *part = CMSG_FIRSTHDR(&m);

	part->cmsg_level = SOL_SOCKET;
	part->cmsg_type = SCM_RIGHTS;
	part->cmsg_len = CMSG_LEN(count * sizeof(int));
	memcpy(CMSG_DATA(part), fds, count * sizeof(int));
	IS(sendmsg(socket, &m, 0), 1);
}

/* How many came; their numbers in `fds`. -1 if there was no message. */
static int receive_files(int *fds, int flags, int *said, int many)
{
	char control[CMSG_SPACE(4 * sizeof(int))] = { 0 }, byte = 0;
	struct iovec data = { &byte, 1 };
	struct mmsghdr m = {
		{ .msg_iov = &data, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control }, 0
	};
	struct cmsghdr *part;
	int count;

	if (many ? recvmmsg(SOCKET, &m, 1, flags, NULL) != 1 : recvmsg(SOCKET, &m.msg_hdr, flags) != 1)
		return -1;
	*said = m.msg_hdr.msg_flags;
	IS(byte, 'x');
	part = CMSG_FIRSTHDR(&m.msg_hdr);
	if (!part)
		return 0;
	count = (int)((part->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(part), count * sizeof(int));
	return count;
}

static void nothing(int sig)
{
	(void)sig;
}

static int inside(void)
{
	struct sigaction action = { .sa_handler = nothing };
	struct timeval soon = { 0, 50000 }, never = { 0, 0 };
	int fds[4], said = 0;
	char text[8];

	/* An inherited descriptor can be read, from where it was. */
	IS(write(INHERITED, "x", 1), -1);
	IS(errno, EBADF);
	IS(write(HIGH, "x", 1), -1);
	IS(errno, EBADF);
	IS(ftruncate(INHERITED, 0), -1);
	IS(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, INHERITED, 0) == MAP_FAILED, 1);
	IS(read(INHERITED, text, 4), 4);
	IS(fchmod(INHERITED, 0600), -1);
	IS(errno, EROFS);

	/* Waiting for a message is the client's: it has its signals and its limit. */
	sigaction(SIGALRM, &action, NULL);
	ualarm(50000, 0);
	IS(receive_files(fds, 0, &said, 0), -1);
	IS(errno, EINTR);
	setsockopt(SOCKET, SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon);
	IS(receive_files(fds, 0, &said, 0), -1);
	IS(errno, EAGAIN);
	setsockopt(SOCKET, SOL_SOCKET, SO_RCVTIMEO, &never, sizeof never);
	IS(receive_files(fds, MSG_DONTWAIT, &said, 0), -1);
	IS(errno, EAGAIN);

	/* One of three may not come. */
	for (int many = 0; many < 2; many++) {
		IS(write(SOCKET, "go", 2), 2);
		IS(receive_files(fds, many ? MSG_CMSG_CLOEXEC : 0, &said, many), 2);
		IS(said & MSG_CTRUNC, MSG_CTRUNC);
		IS(fcntl(fds[0], F_GETFD), many);
		IS(write(fds[0], "y", 1), 1);
		IS(write(fds[1], "y", 1), 1);
		IS(close(fds[0]), 0);
		IS(close(fds[1]), 0);
	}
	/* None may. */
	IS(write(SOCKET, "go", 2), 2);
	IS(receive_files(fds, 0, &said, 0), 0);
	IS(said & MSG_CTRUNC, MSG_CTRUNC);
	/* All may. */
	IS(write(SOCKET, "go", 2), 2);
	IS(receive_files(fds, 0, &said, 0), 1);
	IS(said & MSG_CTRUNC, 0);
	return wrong;
}

static void wait_to_go(int socket)
{
	char text[2];

	IS(read(socket, text, 2), 2);
}

int main(int argc, char **argv)
{
	int protected = open("f", O_RDWR), allowed = open("rw/f", O_RDWR | O_APPEND), pair[2], pipes[2], status;
	pid_t child;

	if (argc > 2)
		return inside();
	IS(dup2(protected, INHERITED), INHERITED);
	IS(dup2(protected, HIGH), HIGH);
	IS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	IS(pipe(pipes), 0);
	if (!(child = fork())) {
		dup2(pair[1], SOCKET);
		for (int fd = 3; fd < INHERITED; fd++)
			close(fd);
		execl("/grates/readonly_grate.cwasm", "readonly_grate", "--allow", argv[1], argv[0], argv[1], "inside",
		    (char *)NULL);
		_exit(9);
	}
	close(pair[1]);
	for (int many = 0; many < 2; many++) {
		wait_to_go(pair[0]);
		send_files(pair[0], (int[]){ allowed, protected, pipes[1] }, 3);
	}
	wait_to_go(pair[0]);
	send_files(pair[0], (int[]){ protected }, 1);
	wait_to_go(pair[0]);
	send_files(pair[0], (int[]){ allowed }, 1);
	IS(waitpid(child, &status, 0), child);
	IS(status, 0);
	return wrong;
}
