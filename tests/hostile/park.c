/* Parks descriptors in messages that nobody receives, in as many sockets as it gets, in CAGES cages
 * at once; then each sends one more and another cage sends some. Says how many were parked by the
 * one that got furthest: park CAGES. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int pass(int socket, int fd, int count)
{
	int fds[250];
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

/* The sockets that they were sent to stay; those that sent them are closed. */
static int park(int count, int *kept)
{
	int pair[2], parked = 0, before;

	for (;;) {
		if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
			return parked;
		*kept = pair[1];
		for (before = parked; pass(pair[0], pair[0], count) > 0; parked += count)
			;
		close(pair[0]);
		if (parked == before)
			return parked;
	}
}

int main(int argc, char **argv)
{
	int cages = argc > 1 ? atoi(argv[1]) : 1, count = argc > 2 ? atoi(argv[2]) : 250, ready[2], most = 0, parked,
	    last, status;

	if (pipe(ready))
		return 2;
	for (int i = 0; i < cages; i++)
		if (fork() == 0) {
			parked = park(count, &last);
			if (write(ready[1], &parked, sizeof parked) != sizeof parked)
				_exit(3);
			pause();
		}
	for (int i = 0; i < cages; i++) {
		if (read(ready[0], &parked, sizeof parked) != sizeof parked)
			return 4;
		most = parked > most ? parked : most;
	}
	printf("parked %d\n", most);
	fflush(stdout);
	if ((last = fork()) == 0) {
		int pair[2];

		_exit(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || pass(pair[0], 0, 5) != 1 ? 1 : 0);
	}
	/* The others pause. */
	status = last < 0 || waitpid(last, &status, 0) < 0 ? 5 : status;
	signal(SIGTERM, SIG_IGN);
	kill(0, SIGTERM);
	return status ? 6 : 0;
}
