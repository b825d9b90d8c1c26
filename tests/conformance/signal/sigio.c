/* Signals about files: O_ASYNC, F_SETOWN and its kin, on pipes, sockets and terminals, through dup,
 * fork and close. */
#include "check.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#ifndef SI_SIGIO
#define SI_SIGIO (-5)
#endif

static int told; /* A real-time signal. */
static sigset_t all;

/* Waits for one of the signals, which are blocked; 0 if none comes. */
static int next(siginfo_t *info, int milliseconds)
{
	struct timespec limit = { milliseconds / 1000, milliseconds % 1000 * 1000000 };
	siginfo_t other;
	int got;

	do
		got = sigtimedwait(&all, info ? info : &other, &limit);
	while (got < 0 && errno == EINTR);
	return got < 0 ? 0 : got;
}

static void forget(void)
{
	while (next(NULL, 30))
		;
}

static void nothing(void)
{
	CHECK_EQ(next(NULL, 60), 0);
}

/* The next signal is `told`, about `fd`. */
static void expect_at(int line, int fd, int code, long band)
{
	siginfo_t info = { 0 };
	int right = CHECK_EQ(next(&info, 5000), told);

	right &= CHECK_EQ(info.si_fd, fd) & CHECK_EQ(info.si_code, code) & CHECK_EQ(info.si_band, band);
	if (!right)
		printf("expected at line %d\n", line);
}

#define expect(...) expect_at(__LINE__, __VA_ARGS__)

static void turn(int fd, int on)
{
	int flags = fcntl(fd, F_GETFL);

	CHECK_EQ(fcntl(fd, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC), 0);
	CHECK_EQ(!!(fcntl(fd, F_GETFL) & O_ASYNC), on);
}

static void arm(int fd)
{
	CHECK_EQ(fcntl(fd, F_SETOWN, getpid()), 0);
	CHECK_EQ(fcntl(fd, F_SETSIG, told), 0);
	turn(fd, 1);
}

#define READABLE (POLLIN | POLLRDNORM)
#define WRITABLE (POLLOUT | POLLWRNORM | POLLWRBAND)

static void owners(void)
{
	struct f_owner_ex owner = { F_OWNER_PID, getpid() };
	int p[2];

	NEED(!pipe(p));
	CHECK_EQ(fcntl(p[0], F_GETOWN), 0);
	CHECK_EQ(fcntl(p[0], F_GETSIG), 0);
	CHECK_EQ(fcntl(p[0], F_SETOWN, getpid()), 0);
	CHECK_EQ(fcntl(p[0], F_GETOWN), getpid());
	CHECK_EQ(fcntl(p[1], F_GETOWN), 0);
	CHECK_EQ(fcntl(p[0], F_SETOWN, -getpgrp()), 0);
	CHECK_EQ(fcntl(p[0], F_GETOWN), -getpgrp());
	CHECK_EQ(fcntl(p[0], F_GETOWN_EX, &owner), 0);
	CHECK(owner.type == F_OWNER_PGRP && owner.pid == getpgrp());
	owner.type = F_OWNER_TID, owner.pid = syscall(SYS_gettid);
	CHECK_EQ(fcntl(p[0], F_SETOWN_EX, &owner), 0);
	CHECK_EQ(fcntl(p[0], F_GETOWN), owner.pid);
	CHECK_ERRNO(fcntl(p[0], F_SETOWN, 0x3ffffff0), ESRCH);
	CHECK_ERRNO(fcntl(p[0], F_SETOWN, INT32_MIN), EINVAL);
	owner.type = 3;
	CHECK_ERRNO(fcntl(p[0], F_SETOWN_EX, &owner), EINVAL);
	owner.type = F_OWNER_PID, owner.pid = 0x3ffffff0;
	CHECK_ERRNO(fcntl(p[0], F_SETOWN_EX, &owner), ESRCH);
	CHECK_ERRNO(syscall(SYS_fcntl, p[0], F_SETOWN_EX, (void *)8), EFAULT);
	CHECK_ERRNO(syscall(SYS_fcntl, p[0], F_GETOWN_EX, (void *)8), EFAULT);
	CHECK_EQ(fcntl(p[0], F_GETOWN), (int)syscall(SYS_gettid));
	CHECK_EQ(fcntl(p[0], F_SETOWN, 0), 0);
	CHECK_EQ(fcntl(p[0], F_GETOWN), 0);
	CHECK_EQ(fcntl(p[0], F_SETSIG, 64), 0);
	CHECK_EQ(fcntl(p[0], F_GETSIG), 64);
	CHECK_ERRNO(fcntl(p[0], F_SETSIG, 65), EINVAL);
	CHECK_ERRNO(fcntl(p[0], F_SETSIG, -1), EINVAL);
	close(p[0]), close(p[1]);

	CHECK_ERRNO(fcntl(1000, F_SETOWN, getpid()), EBADF);
}

static void pipes(void)
{
	siginfo_t info;
	char buf[64];
	int p[2], copy;

	NEED(!pipe(p));
	/* Data that is there already sends no signal. */
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(fcntl(p[0], F_SETOWN, getpid()), 0);
	turn(p[0], 1);
	nothing();
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(next(&info, 5000), SIGIO);
	CHECK_EQ(info.si_code, SI_KERNEL);
	CHECK_EQ(fcntl(p[0], F_SETSIG, told), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(write(p[1], "x", 1), 1);
		expect(p[0], POLL_IN, READABLE);
	}
	CHECK_EQ(fcntl(p[0], F_SETSIG, SIGTRAP), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(next(&info, 5000), SIGTRAP);
	CHECK(info.si_code == SI_SIGIO && info.si_band == READABLE);
	CHECK_EQ(fcntl(p[0], F_SETSIG, told), 0);

	/* A copy is the same file, known by the first number. */
	copy = dup(p[0]);
	CHECK(fcntl(copy, F_GETFL) & O_ASYNC);
	CHECK_EQ(fcntl(copy, F_GETOWN), getpid());
	close(p[0]);
	CHECK_EQ(write(p[1], "x", 1), 1);
	expect(p[0], POLL_IN, READABLE);
	turn(copy, 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	nothing();
	CHECK_EQ(ioctl(copy, FIOASYNC, &(int){ 1 }), 0);
	CHECK(fcntl(copy, F_GETFL) & O_ASYNC);
	CHECK_EQ(write(p[1], "x", 1), 1);
	expect(copy, POLL_IN, READABLE);
	CHECK_EQ(read(copy, buf, sizeof buf), 9);
	/* The other end closes. */
	close(p[1]);
	expect(copy, POLL_IN, READABLE);
	close(copy);
	nothing();

	/* A descriptor that is closed while it is armed sends no signal, nor does the next one with its
	 * number. */
	NEED(!pipe(p));
	arm(p[0]);
	copy = p[0];
	close(p[0]), close(p[1]);
	forget();
	NEED(!pipe(p));
	CHECK_EQ(p[0], copy);
	CHECK_EQ(fcntl(p[0], F_GETOWN), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	nothing();

	/* Room in a pipe that was full. */
	fcntl(p[1], F_SETFL, O_NONBLOCK);
	while (write(p[1], (char[4096]){ 0 }, 4096) > 0 || write(p[1], "x", 1) > 0)
		;
	arm(p[1]);
	nothing();
	for (char page[4096]; read(p[0], page, sizeof page) == sizeof page && !next(&info, 20);)
		;
	CHECK(info.si_fd == p[1] && info.si_code == POLL_OUT && info.si_band == WRITABLE);
	forget();
	close(p[0]);
	expect(p[1], POLL_OUT, WRITABLE);
	close(p[1]);
}

static void sockets(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof at;
	siginfo_t info;
	char buf[4096];
	int s[2], listener, client, server, pid = 0;

	NEED(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s));
	arm(s[0]);
	nothing();
	CHECK_EQ(write(s[1], "x", 1), 1);
	expect(s[0], POLL_IN, READABLE);
	/* It could always be written, so a reader on the other side makes no difference. */
	CHECK_EQ(write(s[0], "x", 1), 1);
	CHECK_EQ(read(s[1], buf, 9), 1);
	nothing();
	while (write(s[0], buf, sizeof buf) > 0)
		;
	nothing();
	while (read(s[1], buf, sizeof buf) > 0)
		;
	expect(s[0], POLL_OUT, WRITABLE);
	forget();
	CHECK_EQ(read(s[0], buf, 9), 1);
	close(s[1]);
	expect(s[0], POLL_HUP, POLLHUP | POLLERR);
	close(s[0]);

	NEED(!socketpair(AF_UNIX, SOCK_DGRAM, 0, s));
	CHECK_EQ(ioctl(s[0], FIOSETOWN, &(int){ -getpgrp() }), 0);
	CHECK_EQ(ioctl(s[0], FIOGETOWN, &pid), 0);
	CHECK_EQ(pid, -getpgrp());
	CHECK_EQ(ioctl(s[0], SIOCSPGRP, &(int){ getpid() }), 0);
	CHECK_EQ(ioctl(s[0], SIOCGPGRP, &pid), 0);
	CHECK_EQ(pid, getpid());
	CHECK_EQ(ioctl(s[0], FIOASYNC, &(int){ 1 }), 0);
	CHECK_EQ(send(s[1], "x", 1, 0), 1);
	CHECK_EQ(next(NULL, 5000), SIGIO);
	close(s[0]), close(s[1]);

	/* TCP: a connection comes, data, urgent data, the end. */
	NEED((listener = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	NEED(!bind(listener, (void *)&at, sizeof at) && !listen(listener, 1) &&
	    !getsockname(listener, (void *)&at, &len));
	arm(listener);
	NEED((client = socket(AF_INET, SOCK_STREAM, 0)) >= 0 && !connect(client, (void *)&at, sizeof at));
	expect(listener, POLL_IN, READABLE);
	NEED((server = accept(listener, NULL, NULL)) >= 0);
	CHECK_EQ(fcntl(server, F_GETOWN), 0);
	CHECK(!(fcntl(server, F_GETFL) & O_ASYNC));
	forget();
	/* SIGURG needs an owner only. */
	CHECK_EQ(fcntl(server, F_SETOWN, getpid()), 0);
	CHECK_EQ(send(client, "!", 1, MSG_OOB), 1);
	CHECK_EQ(next(&info, 5000), SIGURG);
	nothing();
	CHECK_EQ(recv(server, buf, 1, MSG_OOB), 1);
	arm(server);
	CHECK_EQ(send(client, "x", 1, 0), 1);
	expect(server, POLL_IN, READABLE);
	CHECK_EQ(send(client, "!", 1, MSG_OOB), 1);
	CHECK_EQ(next(&info, 5000), SIGURG);
	forget();
	shutdown(client, SHUT_WR);
	expect(server, POLL_IN, READABLE);
	close(client), close(server), close(listener);
	forget();

	/* UDP, where what is sent is soon gone: no news either. */
	NEED((server = socket(AF_INET, SOCK_DGRAM, 0)) >= 0);
	at.sin_port = 0;
	NEED(!bind(server, (void *)&at, sizeof at) && !getsockname(server, (void *)&at, &len));
	arm(server);
	CHECK_EQ(sendto(server, "x", 1, 0, (void *)&at, len), 1);
	expect(server, POLL_IN, READABLE);
	nothing();
	close(server);
}

static void connects(void)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof at;
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	NEED(!bind(listener, (void *)&at, sizeof at) && !listen(listener, 1) &&
	    !getsockname(listener, (void *)&at, &len));
	arm(client);
	CHECK_ERRNO(connect(client, (void *)&at, len), EINPROGRESS);
	expect(client, POLL_OUT, WRITABLE);
	close(client), close(listener);
	forget();
}

static void terminals(void)
{
	int master = open("/dev/ptmx", O_RDWR | O_NOCTTY), slave;
	char name[64];

	if (master < 0 || grantpt(master) || unlockpt(master) || ptsname_r(master, name, sizeof name))
		return;
	NEED((slave = open(name, O_RDWR | O_NOCTTY)) >= 0);
	CHECK_EQ(fcntl(slave, F_SETSIG, told), 0);
	turn(slave, 1);
	/* Nobody is in front: it is for who asked. */
	CHECK_EQ(fcntl(slave, F_GETOWN), getpid());
	CHECK_EQ(write(master, "line", 4), 4);
	nothing();
	CHECK_EQ(write(master, "\n", 1), 1);
	expect(slave, POLL_IN, READABLE);
	forget();
	turn(slave, 0);
	CHECK_EQ(write(master, "x\n", 2), 2);
	nothing();
	close(master);
	nothing();
	close(slave);
}

static void watches(void)
{
	int fd = inotify_init1(IN_NONBLOCK);

	NEED(fd >= 0);
	/* Behind a grate there may be nothing to be told. */
	inotify_add_watch(fd, ".", IN_CREATE);
	close(check_file("file", ""));
	if (poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 100) != 1) {
		close(fd);
		unlink("file");
		return;
	}
	arm(fd);
	close(check_file("other", ""));
	expect(fd, POLL_IN, READABLE);
	unlink("other");
	forget();
	close(fd);
	unlink("file");
}

struct other {
	int tid, fds[2];
	sigset_t others;
};

static void *wait_here(void *argument)
{
	struct other *other = argument;
	struct timespec limit = { 5, 0 };
	siginfo_t info;

	__atomic_store_n(&other->tid, (int)syscall(SYS_gettid), __ATOMIC_SEQ_CST);
	if (CHECK_EQ(sigtimedwait(&all, &info, &limit), told))
		CHECK_EQ(info.si_fd, other->fds[0]);
	return NULL;
}

static void threads(void)
{
	struct other other = { 0 };
	pthread_t thread;

	NEED(!pipe(other.fds));
	NEED(!pthread_create(&thread, NULL, wait_here, &other));
	while (!__atomic_load_n(&other.tid, __ATOMIC_SEQ_CST))
		usleep(1000);
	arm(other.fds[0]);
	CHECK_EQ(fcntl(other.fds[0], F_SETOWN_EX, &(struct f_owner_ex){ F_OWNER_TID, other.tid }), 0);
	CHECK_EQ(write(other.fds[1], "x", 1), 1);
	nothing();
	CHECK(!pthread_join(thread, NULL));
	/* It is gone: nobody hears of it. */
	usleep(20000);
	CHECK_EQ(write(other.fds[1], "x", 1), 1);
	nothing();
	CHECK_EQ(fcntl(other.fds[0], F_GETOWN), 0);
	close(other.fds[0]), close(other.fds[1]);
}

static int ended(int pid)
{
	int status = -1;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void children(void)
{
	int p[2], ready[2], pid;
	char byte;

	/* A descriptor that the parent armed signals the parent, whoever writes, even when only a child
	 * holds it. */
	NEED(!pipe(p) && !pipe(ready));
	arm(p[0]);
	if (!(pid = fork())) {
		close(ready[1]);
		_exit(read(ready[0], &byte, 1) != 0 || write(p[1], "x", 1) != 1);
	}
	close(p[0]), close(p[1]);
	nothing();
	close(ready[0]), close(ready[1]);
	CHECK_EQ(ended(pid), 0);
	expect(p[0], POLL_IN, READABLE);
	forget();

	/* A child and its group; SIGIO ends those who do not block it. */
	NEED(!pipe(p) && !pipe(ready));
	if (!(pid = fork())) {
		setpgid(0, 0);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		write(ready[1], "x", 1);
		for (;;)
			pause();
	}
	setpgid(pid, pid);
	CHECK_EQ(read(ready[0], &byte, 1), 1);
	CHECK_EQ(fcntl(p[0], F_SETOWN, -pid), 0);
	turn(p[0], 1);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(ended(pid), SIGIO);
	CHECK_EQ(fcntl(p[0], F_GETOWN), 0);
	forget();

	/* User ids decide, and what they were when the owner was set. A cage may not be able to change
	 * them. */
	for (int by_child = 0; by_child < 2; by_child++) {
		if (!by_child)
			CHECK_EQ(fcntl(p[0], F_SETOWN, getpid()), 0);
		if (!(pid = fork())) {
			if (geteuid() || setuid(12345))
				_exit(77);
			if (by_child)
				CHECK_EQ(fcntl(p[0], F_SETOWN, getppid()), 0);
			CHECK_EQ(write(p[1], "x", 1), 1);
			_exit(check_done());
		}
		if (ended(pid) == 77 << 8)
			break;
		CHECK_EQ(next(NULL, by_child ? 60 : 5000), by_child ? 0 : SIGIO);
	}
	close(p[0]), close(p[1]), close(ready[0]), close(ready[1]);
	forget();
}

/* Many events, and descriptors that come and go: nothing is lost in the end, and nobody hangs. */
static void floods(void)
{
	int p[2], many[200][2];
	siginfo_t info;

	NEED(!pipe(p));
	fcntl(p[1], F_SETFL, O_NONBLOCK);
	arm(p[0]);
	for (int i = 0; i < 20000; i++) {
		write(p[1], "x", 1);
		if (i % 100 == 0)
			close(dup(p[0]));
	}
	CHECK_EQ(next(&info, 5000), told);
	for (int i = 0; i < 20000 && next(NULL, 100); i++)
		;
	forget();
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 200; i++) {
			NEED(!pipe(many[i]));
			arm(many[i][0]);
			CHECK_EQ(write(many[i][1], "x", 1), 1);
		}
		for (int i = 0; i < 200; i++)
			CHECK_EQ(next(NULL, 5000), told);
		nothing();
		for (int i = 0; i < 200; i++)
			close(many[i][i & 1]), close(many[i][!(i & 1)]);
		forget();
	}
	close(p[0]), close(p[1]);
}

int main(void)
{
	told = SIGRTMIN + 3;
	setpgid(0, 0); /* A group that has a number here. */
	sigemptyset(&all);
	for (int i = 0; i < 4; i++)
		sigaddset(&all, (int[]){ SIGIO, SIGURG, SIGTRAP, told }[i]);
	NEED(!sigprocmask(SIG_BLOCK, &all, NULL));
	owners();
	pipes();
	sockets();
	connects();
	terminals();
	watches();
	threads();
	children();
	floods();
	return check_done();
}
