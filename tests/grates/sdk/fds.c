/*
 * Random operations on descriptors behind fds_grate, with a model that knows what each number must
 * be.
 *
 *	fds model SEED STEPS	one thread: dup, close, fork, exec, sending
 *	fds full		a message waits for space in its socket; a signal ends the wait
 *	fds race		16 threads, each with its own numbers; files of others stay unwritten
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FDS   64
#define FIRST 10

__attribute__((import_module("lind"), import_name("syscall"))) long long raw(int nr, unsigned long long a,
    unsigned long long b, unsigned long long c, unsigned long long d, unsigned long long e, unsigned long long f);

extern char **environ;

/* The expected file at each number: -1 nothing, 0 a file without a state, N the file fds-N. */
static int model[FDS];
static char cloexec[FDS];
static unsigned seed;
static char *self;

static unsigned below(unsigned n)
{
	seed = seed * 1664525 + 1013904223;
	return (seed >> 8) % n;
}

static void fail(const char *what, int a, int b)
{
	printf("pid %d: %s: %d, %d\n", (int)getpid(), what, a, b);
	fflush(stdout);
	_exit(1);
}

static int tag(int fd)
{
	return (int)raw(900, fd, 0, 0, 0, 0, 0);
}

static void check(const char *after)
{
	for (int fd = FIRST; fd < FDS; fd++) {
		int wanted = model[fd] < 0 ? 0 : model[fd], got = tag(fd);

		if (got != wanted) {
			printf("after %s descriptor %d is %d, not %d\n", after, fd, got, wanted);
			fail(after, fd, got);
		}
	}
}

static int a_number(void)
{
	return FIRST + below(FDS - FIRST);
}

static int an_open_one(void)
{
	for (int tries = 0; tries < 200; tries++) {
		int fd = a_number();

		if (model[fd] >= 0)
			return fd;
	}
	return -1;
}

static void open_at(int fd, int number, int close_on_exec)
{
	char path[32];
	int made;

	snprintf(path, sizeof path, number ? "/tmp/fds-%d" : "/tmp/fds-none", number);
	made = openat(AT_FDCWD, path, O_CREAT | O_RDWR | (close_on_exec ? O_CLOEXEC : 0), 0600);
	if (made < 0)
		fail("open", errno, number);
	if (made != fd && (dup3(made, fd, close_on_exec ? O_CLOEXEC : 0) != fd || close(made)))
		fail("dup3 to a place", errno, fd);
	model[fd] = number;
	cloexec[fd] = close_on_exec;
}

static void move(int to, int from, int close_on_exec)
{
	if (to == from)
		return;
	model[to] = model[from];
	cloexec[to] = close_on_exec;
}

/* Sends one descriptor to ourselves: it arrives at the lowest free number at or above FIRST, where
 * it is put. */
static void send_and_receive(int fd, int to, int mmsg)
{
	int pair[2], got, close_on_exec = below(2);
	struct iovec iov = { "x", 1 };
	char byte, control[64] __attribute__((aligned(8)));
	struct mmsghdr m = { .msg_hdr = { .msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = CMSG_SPACE(sizeof fd) } };
	struct cmsghdr *head = CMSG_FIRSTHDR(&m.msg_hdr);

	if (socketpair(AF_UNIX, below(2) ? SOCK_STREAM : SOCK_SEQPACKET, 0, pair))
		fail("socketpair", errno, 0);
	memset(control, 0, sizeof control);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(head), &fd, sizeof fd);
	if (mmsg ? sendmmsg(pair[0], &m, 1, 0) != 1 || m.msg_len != 1 : sendmsg(pair[0], &m.msg_hdr, 0) != 1)
		fail("sendmsg", errno, mmsg);
	/* On its way it may be without a number. */
	int was = model[fd];
	if (below(2)) {
		close(fd);
		model[fd] = -1;
	}
	iov.iov_base = &byte;
	if (below(2)) {
		/* Looking makes a descriptor too, and the message is still there. */
		memset(control, 0, sizeof control);
		m.msg_hdr.msg_controllen = sizeof control;
		if (recvmsg(pair[1], &m.msg_hdr, MSG_PEEK) != 1 || !(head = CMSG_FIRSTHDR(&m.msg_hdr)))
			fail("MSG_PEEK", errno, mmsg);
		memcpy(&got, CMSG_DATA(head), sizeof got);
		if (tag(got) != was)
			fail("the peeked message is another", tag(got), was);
		close(got);
	}
	memset(control, 0, sizeof control);
	m.msg_hdr.msg_controllen = sizeof control;
	if (mmsg ? recvmmsg(pair[1], &m, 1, close_on_exec ? MSG_CMSG_CLOEXEC : 0, NULL) != 1
		 : recvmsg(pair[1], &m.msg_hdr, close_on_exec ? MSG_CMSG_CLOEXEC : 0) != 1)
		fail("recvmsg", errno, mmsg);
	head = CMSG_FIRSTHDR(&m.msg_hdr);
	if (!head || head->cmsg_type != SCM_RIGHTS)
		fail("no descriptor came", m.msg_hdr.msg_flags, m.msg_hdr.msg_controllen);
	memcpy(&got, CMSG_DATA(head), sizeof got);
	if (tag(got) != was)
		fail("the received message is another", tag(got), was);
	close(pair[0]);
	close(pair[1]);
	if (got != to) {
		if (dup3(got, to, close_on_exec ? O_CLOEXEC : 0) != to)
			fail("dup3 of what came", errno, to);
		close(got);
	}
	model[to] = was;
	cloexec[to] = close_on_exec;
}

static void child_looks(void)
{
	pid_t child = fork();
	int status;

	if (child < 0)
		fail("fork", errno, 0);
	if (!child) {
		check("fork");
		int fd = an_open_one();
		if (fd >= 0) {
			close(fd);
			model[fd] = -1;
		}
		check("close in the child");
		_exit(0);
	}
	if (waitpid(child, &status, 0) != child || status)
		fail("the child", status, 0);
}

static void arguments(char **argv, char text[][16], int steps)
{
	int n = 0;

	argv[n++] = self;
	argv[n++] = "model";
	sprintf(text[0], "%u", seed);
	argv[n++] = text[0];
	sprintf(text[1], "%d", steps);
	argv[n++] = text[1];
	for (int fd = FIRST; fd < FDS; fd++) {
		sprintf(text[fd], "%d", model[fd] >= 0 && cloexec[fd] ? -1 : model[fd]);
		argv[n++] = text[fd];
	}
	argv[n] = NULL;
}

static char text[FDS][16], *words[FDS + 8];

static void run_again(int steps)
{
	arguments(words, text, steps);
	execv(self, words);
	fail("exec", errno, 0);
}

static void spawned_looks(void)
{
	pid_t child;
	int status;

	arguments(words, text, 0);
	if (posix_spawn(&child, self, NULL, NULL, words, environ))
		fail("spawn", errno, 0);
	if (waitpid(child, &status, 0) != child || status)
		fail("the spawned program", status, 0);
}

static void step(int steps)
{
	int from = an_open_one(), to = a_number(), got, flag = below(2);

	switch (from < 0 ? 0 : below(17)) {
	case 0:
	case 1:
	case 2:
		open_at(to, below(3) ? 1 + below(4) : 0, flag);
		return check("open");
	case 3:
		if (dup2(from, to) != to)
			fail("dup2", errno, to);
		move(to, from, 0);
		return check("dup2");
	case 4:
		if (from != to && dup3(from, to, flag ? O_CLOEXEC : 0) != to)
			fail("dup3", errno, to);
		move(to, from, flag);
		return check("dup3");
	case 5:
		if ((got = fcntl(from, flag ? F_DUPFD_CLOEXEC : F_DUPFD, FIRST)) < FIRST)
			fail("F_DUPFD", errno, got);
		if (got >= FDS)
			close(got);
		else
			move(got, from, flag);
		return check("F_DUPFD");
	case 6:
		if ((got = dup(from)) < 0 || tag(got) != model[from])
			fail("dup", got, tag(got));
		close(got);
		if (tag(got))
			fail("close of a dup", got, tag(got));
		return check("dup");
	case 7:
		if (fcntl(from, F_SETFD, flag ? FD_CLOEXEC : 0))
			fail("F_SETFD", errno, from);
		cloexec[from] = flag;
		return;
	case 8:
		if (ioctl(from, flag ? FIOCLEX : FIONCLEX))
			fail("FIOCLEX", errno, from);
		cloexec[from] = flag;
		return;
	case 9:
	case 10:
		close(from);
		model[from] = -1;
		return check("close");
	case 11: {
		int last = from + below(4), how = below(3) ? 0 : 4 /* CLOSE_RANGE_CLOEXEC */;

		last = last < FDS ? last : FDS - 1;
		if (syscall(SYS_close_range, from, last, how))
			fail("close_range", errno, from);
		for (int fd = from; fd <= last; fd++)
			if (how)
				cloexec[fd] = 1;
			else
				model[fd] = -1;
		return check("close_range");
	}
	case 12:
		return child_looks();
	case 13:
		if (below(4) == 0)
			run_again(steps);
		return;
	case 14:
		return spawned_looks();
	default:
		send_and_receive(from, to, flag);
		return check("a message");
	}
}

static int random_steps(int argc, char **argv)
{
	seed = (unsigned)strtoul(argv[2], NULL, 10);
	memset(model, -1, sizeof model);
	if (argc > 4)
		for (int fd = FIRST; fd < FDS; fd++)
			model[fd] = atoi(argv[4 + fd - FIRST]);
	check("the start");
	for (int steps = atoi(argv[3]); steps > 0; steps--)
		step(steps - 1);
	syscall(SYS_close_range, FIRST, ~0u, 0);
	return 0;
}

static int stop;

static void *racer(void *argument)
{
	unsigned mine = (unsigned)(size_t)argument * 7919 + 1;

	for (int i = 0; i < 300; i++) {
		int number = (mine = mine * 1664525 + 1013904223) >> 30, fd, copy;
		char path[32];

		snprintf(path, sizeof path, number ? "/tmp/fds-%d" : "/tmp/fds-none", number);
		if ((fd = openat(AT_FDCWD, path, O_CREAT | O_RDWR, 0600)) < 0)
			fail("open", errno, number);
		if (tag(fd) != number)
			fail("an opened file", tag(fd), number);
		if ((copy = mine & 1 << 20 ? dup(fd) : fcntl(fd, F_DUPFD_CLOEXEC, 20)) < 0 || tag(copy) != number)
			fail("a duplicate", tag(copy), number);
		close(fd);
		if (tag(copy) != number)
			fail("a duplicate after close", tag(copy), number);
		if (i % 50 == 0) {
			pid_t child = fork();
			int status;

			if (!child)
				_exit(tag(copy) != number);
			if (waitpid(child, &status, 0) != child || status)
				fail("a child's duplicate", status, number);
		}
		close(copy);
	}
	return NULL;
}

/* Puts the file with a state and one without in turns at a number that others write to. */
static void *switcher(void *unused)
{
	int shut = openat(AT_FDCWD, "/tmp/fds-1", O_RDWR), open_ = openat(AT_FDCWD, "/tmp/fds-none", O_RDWR),
	    at = *(int *)unused;

	for (int i = 0; i < 3000; i++) {
		int other;

		dup2(shut, at);
		dup2(open_, at);
		if ((other = dup(shut)) >= 0)
			close(other);
	}
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	return NULL;
}

static void *writer(void *argument)
{
	int at = *(int *)argument;

	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		/* Whichever file it is a duplicate of. */
		int copy = dup(at);

		for (int fd = at; fd < at + 24; fd++)
			if (fd == at || fd > at + 4)
				raw(SYS_write, fd, (size_t)"!", 1, 0, 0, 0);
		if (copy >= 0) {
			raw(SYS_write, copy, (size_t)"?", 1, 0, 0, 0);
			close(copy);
		}
	}
	return NULL;
}

static int race(void)
{
	pthread_t threads[16];
	int at, fd;

	for (size_t i = 0; i < 16; i++)
		if (pthread_create(&threads[i], NULL, racer, (void *)i))
			fail("thread", errno, (int)i);
	for (int i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
	if ((fd = openat(AT_FDCWD, "/tmp/fds-1", O_RDWR | O_CREAT | O_TRUNC, 0600)) < 0 ||
	    (at = openat(AT_FDCWD, "/tmp/fds-none", O_RDWR | O_CREAT, 0600)) < 0)
		fail("open", errno, 0);
	pthread_create(&threads[0], NULL, switcher, &at);
	for (int i = 1; i < 16; i++)
		pthread_create(&threads[i], NULL, writer, &at);
	for (int i = 0; i < 16; i++)
		pthread_join(threads[i], NULL);
	if (lseek(fd, 0, SEEK_END) != 0)
		fail("a descriptor with a state was written", (int)lseek(fd, 0, SEEK_END), 0);
	close(fd);
	close(at);
	syscall(SYS_close_range, 3, ~0u, 0);
	if (raw(901, 0, 0, 0, 0, 0, 0))
		fail("states were left", (int)raw(901, 0, 0, 0, 0, 0, 0), 0);
	return 0;
}

static void nothing(int signal)
{
	(void)signal;
}

static int send_descriptor(int to, int fd)
{
	union {
		char bytes[CMSG_SPACE(sizeof(int))];
		struct cmsghdr align;
	} control = { { 0 } };
	struct iovec iov = { "x", 1 };
	struct msghdr m = {
		.msg_iov = &iov, .msg_iovlen = 1, .msg_control = control.bytes, .msg_controllen = sizeof control
	};
	struct cmsghdr *head = CMSG_FIRSTHDR(&m);

	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(head), &fd, sizeof fd);
	return (int)sendmsg(to, &m, 0);
}

/* The number is one that the grate has not, or has for something else. */
static int full(int type)
{
	struct sigaction act = { .sa_handler = nothing };
	char bytes[4096] = { 0 };
	int s[2], sent = 0, got = 0;
	pid_t child;

	if (socketpair(AF_UNIX, type, 0, s) || dup2(s[0], 200) < 0)
		return 1;
	fcntl(200, F_SETFL, O_NONBLOCK);
	while (write(200, bytes, 1000) > 0)
		sent++;
	fcntl(200, F_SETFL, 0);
	sigaction(SIGALRM, &act, NULL);
	alarm(1);
	errno = 0;
	if (send_descriptor(200, 1) != -1 || errno != EINTR)
		fail("a wait with a signal", errno, EINTR);
	if (!(child = fork())) {
		usleep(50000);
		while (got < sent && read(s[1], bytes, type == SOCK_STREAM ? 1000 : sizeof bytes) > 0)
			got++;
		_exit(0);
	}
	if (send_descriptor(200, 1) != 1)
		fail("a wait for room", errno, 0);
	waitpid(child, NULL, 0);
	close(s[0]);
	close(s[1]);
	return 0;
}

int main(int argc, char **argv)
{
	self = argv[0];
	if (argc > 1 && !strcmp(argv[1], "full"))
		return full(SOCK_STREAM) || full(SOCK_DGRAM) || full(SOCK_SEQPACKET);
	return argc > 3 ? random_steps(argc, argv) : race();
}
