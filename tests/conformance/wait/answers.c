/* Waiting for an answer that comes soon, late and never, by every call that waits for input, while
 * signals interrupt. */
#include "check.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>

#define TURNS 300

static volatile sig_atomic_t ticks;

static void tick(int sig)
{
	(void)sig;
	ticks++;
}

static ssize_t by_read(int fd, unsigned char *byte)
{
	return read(fd, byte, 1);
}

static ssize_t by_readv(int fd, unsigned char *byte)
{
	struct iovec part = { byte, 1 };
	return readv(fd, &part, 1);
}

static ssize_t by_poll(int fd, unsigned char *byte)
{
	struct pollfd one = { .fd = fd, .events = POLLIN };
	int ready = poll(&one, 1, -1);
	if (ready != 1)
		return ready;
	CHECK(one.revents & POLLIN);
	return read(fd, byte, 1);
}

static ssize_t by_epoll(int fd, unsigned char *byte)
{
	struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.fd = fd };
	int epoll = epoll_create1(0);
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	int ready = epoll_wait(epoll, &event, 1, -1), saved = errno;
	/* An event with EPOLLONESHOT does not fire a second time. */
	if (ready == 1) {
		CHECK_EQ(event.data.fd, fd);
		CHECK_EQ(epoll_wait(epoll, &event, 1, 0), 0);
	}
	close(epoll);
	errno = saved;
	return ready == 1 ? read(fd, byte, 1) : ready;
}

static ssize_t by_recv(int fd, unsigned char *byte)
{
	return recv(fd, byte, 1, 0);
}

static ssize_t by_recvmsg(int fd, unsigned char *byte)
{
	struct iovec part = { byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	return recvmsg(fd, &message, MSG_WAITALL);
}

typedef ssize_t receive_call(int fd, unsigned char *byte);

static receive_call *const calls[] = { by_read, by_readv, by_poll, by_epoll, by_recv, by_recvmsg };

/* Every fifth answer takes its time. */
static void answer(int in, int out, receive_call *receive)
{
	unsigned char byte;

	for (int i = 0; i < TURNS; i++) {
		NEED(receive(in, &byte) == 1);
		if (i % 5 == 4)
			usleep(300);
		byte++;
		NEED(write(out, &byte, 1) == 1);
	}
	_exit(0);
}

static void ask(int in, int out, receive_call *receive)
{
	int interrupted = 0;

	for (int i = 0; i < TURNS; i++) {
		unsigned char byte = (unsigned char)i;
		ssize_t got;

		CHECK_EQ(write(out, &byte, 1), 1);
		while ((got = receive(in, &byte)) == -1 && errno == EINTR)
			interrupted++;
		CHECK_EQ(got, 1);
		CHECK_EQ(byte, (i + 1) & 255);
	}
	CHECK(interrupted <= ticks);
}

static void ping_pong(int sockets, receive_call *receive)
{
	int there[2], back[2], status;

	if (sockets) {
		NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, there) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, back) == 0);
	} else {
		NEED(pipe(there) == 0 && pipe(back) == 0);
	}
	pid_t child = fork();
	if (child == 0)
		answer(there[0], back[1], receive);
	close(back[1]);
	close(there[0]);

	struct itimerval often = { { 0, 700 }, { 0, 700 } }, never = { 0 };
	setitimer(ITIMER_REAL, &often, NULL);
	ask(back[0], there[1], receive);
	setitimer(ITIMER_REAL, &never, NULL);

	unsigned char byte;
	pid_t ended;
	/* The last signal may come a moment after its timer was stopped. */
	while ((ended = waitpid(child, &status, 0)) == -1 && errno == EINTR)
		;
	CHECK_EQ(ended, child);
	CHECK_EQ(status, 0);
	/* Nobody is left to answer. */
	CHECK_EQ(read(back[0], &byte, 1), 0);
	close(there[1]);
	close(back[0]);
}

/* Calls that must not wait, or only so long, or for so many bytes. */
static void conditions(void)
{
	struct timeval soon = { 0, 20000 };
	struct timespec before, after;
	char bytes[8];
	int pair[2], much = 4;

	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	CHECK_ERRNO(recv(pair[0], bytes, 8, MSG_DONTWAIT), EAGAIN);
	CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof soon), 0);
	clock_gettime(CLOCK_MONOTONIC, &before);
	CHECK_ERRNO(read(pair[0], bytes, 8), EAGAIN);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK((after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000 >= 20000);
	CHECK_EQ(setsockopt(pair[0], SOL_SOCKET, SO_RCVLOWAT, &much, sizeof much), 0);
	CHECK_EQ(write(pair[1], "abcdef", 6), 6);
	CHECK_EQ(recv(pair[0], bytes, 8, 0), 6);
	CHECK_EQ(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
	for (int i = 0; i < 20; i++)
		CHECK_ERRNO(read(pair[0], bytes, 8), EAGAIN);
	close(pair[0]);
	close(pair[1]);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turned = PTHREAD_COND_INITIALIZER;
static int turn;

static void *other(void *unused)
{
	pthread_mutex_lock(&lock);
	for (int i = 0; i < TURNS; i++) {
		while (turn % 2 == 0)
			pthread_cond_wait(&turned, &lock);
		if (i % 5 == 4)
			usleep(300);
		turn++;
		pthread_cond_signal(&turned);
	}
	pthread_mutex_unlock(&lock);
	return unused;
}

static void threads(void)
{
	struct timespec past = { 1, 0 };
	pthread_t thread;

	NEED(pthread_create(&thread, NULL, other, NULL) == 0);
	pthread_mutex_lock(&lock);
	for (int i = 0; i < TURNS; i++) {
		turn++;
		pthread_cond_signal(&turned);
		while (turn % 2 == 1)
			pthread_cond_wait(&turned, &lock);
	}
	CHECK_EQ(turn, 2 * TURNS);
	CHECK_EQ(pthread_cond_timedwait(&turned, &lock, &past), ETIMEDOUT);
	pthread_mutex_unlock(&lock);
	CHECK_EQ(pthread_join(thread, NULL), 0);
}

int main(void)
{
	struct sigaction action = { .sa_handler = tick };

	sigaction(SIGALRM, &action, NULL);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		if (i < 4)
			ping_pong(0, calls[i]);
		ping_pong(1, calls[i]);
	}
	CHECK(ticks > 0);
	conditions();
	threads();
	return check_done();
}
