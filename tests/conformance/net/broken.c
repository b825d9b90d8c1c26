/* Which broken sockets send SIGPIPE: streams, unless MSG_NOSIGNAL or SIG_IGN. A signal is observed
 * while it is blocked. */
#include "check.h"

#include <signal.h>
#include <sys/socket.h>

/* Whether SIGPIPE became pending. It is dropped again. */
static int piped(void)
{
	sigset_t pending;
	int was;

	NEED(sigpending(&pending) == 0);
	was = sigismember(&pending, SIGPIPE);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGPIPE, SIG_DFL);
	return was;
}

static void broken(int type, int flags, int signals)
{
	struct iovec data = { "x", 1 };
	struct msghdr message = { .msg_iov = &data, .msg_iovlen = 1 };
	int pair[2];

	NEED(socketpair(AF_UNIX, type, 0, pair) == 0 && shutdown(pair[0], SHUT_WR) == 0);
	CHECK_ERRNO(send(pair[0], "x", 1, flags), EPIPE);
	CHECK_EQ(piped(), signals);
	CHECK_ERRNO(sendmsg(pair[0], &message, flags), EPIPE);
	CHECK_EQ(piped(), signals);
	if (!flags) {
		CHECK_ERRNO(write(pair[0], "x", 1), EPIPE);
		CHECK_EQ(piped(), signals);
	}
	close(pair[0]);
	close(pair[1]);
}

int main(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGPIPE);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	broken(SOCK_STREAM, 0, 1);
	broken(SOCK_STREAM, MSG_NOSIGNAL, 0);
	broken(SOCK_DGRAM, 0, 0);
	broken(SOCK_SEQPACKET, 0, 0);
	signal(SIGPIPE, SIG_IGN);
	NEED(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
	CHECK_ERRNO(send(socket(AF_INET, SOCK_STREAM, 0), "x", 1, 0), EPIPE);
	return check_done();
}
