/*
 * kinds [flags]: descriptors of each kind, or open in each way. Whether a clamp takes the calls on
 * them is told by lseek, whose offset says which descriptor it is (its place in the list) and how
 * it was come by: 100 made, 200 dup, 300 dup2, 400 fork, 500 exec, 600 in a message.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define MOST   16
#define EXECED "execed"

static int fds[MOST], count;

static void add(int fd)
{
	if (fd < 0) {
		fprintf(stderr, "descriptor %d: ", count);
		perror(NULL);
		exit(1);
	}
	lseek(fd, 100 + count, SEEK_SET);
	fds[count++] = fd;
}

static void make_kinds(void)
{
	sigset_t none;
	int pair[2];

	sigemptyset(&none);
	add(open("kinds.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600));
	add(open(".", O_RDONLY | O_DIRECTORY));
	add(pipe(pair) ? -1 : pair[1]);
	add(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) ? -1 : pair[1]);
	add(open("/dev/null", O_RDWR));
	add(open("/dev/ptmx", O_RDWR | O_NOCTTY));
	add(memfd_create("kinds", 0));
	add(epoll_create1(0));
	add(eventfd(0, 0));
	add(timerfd_create(CLOCK_MONOTONIC, 0));
	add(signalfd(-1, &none, 0));
	add(inotify_init());
	add(syscall(SYS_pidfd_open, getpid(), 0));
}

static void make_flags(void)
{
	int file;

	add(open("kinds.tmp", O_RDWR | O_CREAT | O_TRUNC, 0600));
	add(open("kinds.tmp", O_RDONLY));
	add(open("kinds.tmp", O_WRONLY));
	add(open("kinds.tmp", O_WRONLY | O_APPEND));
	add(open("kinds.tmp", O_RDONLY | O_NONBLOCK));
	add(open("kinds.tmp", O_PATH));
	/* Becomes so, which its copy does then, too. */
	add(file = open("kinds.tmp", O_RDWR));
	add(dup(file));
	fcntl(file, F_SETFL, O_APPEND);
}

static void seek_all(int how)
{
	for (int i = 0; i < count; i++)
		lseek(fds[i], how + i, SEEK_SET);
}

static void run(void act(void))
{
	int status;

	if (!fork()) {
		act();
		_exit(0);
	}
	if (wait(&status) < 0 || status)
		exit(2);
}

static void forked(void)
{
	seek_all(400);
}

static const char *self;

static void execs(void)
{
	char words[MOST][12], *argv[MOST + 3] = { (char *)self, EXECED };

	for (int i = 0; i < count; i++) {
		sprintf(words[i], "%d", fds[i]);
		argv[2 + i] = words[i];
	}
	execv(self, argv);
	_exit(3);
}

static void pass(int from, int to, int i)
{
	_Alignas(8) char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec byte = { "x", 1 };
	struct msghdr m = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	int fd = fds[i];

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	if (sendmsg(from, &m, 0) != 1 || recvmsg(to, &m, 0) != 1 || !(h = CMSG_FIRSTHDR(&m))) {
		fprintf(stderr, "message %d: ", i);
		perror(NULL);
		exit(4);
	}
	memcpy(&fd, CMSG_DATA(h), sizeof fd);
	lseek(fd, 600 + i, SEEK_SET);
	close(fd);
}

int main(int argc, char **argv)
{
	int pair[2];

	self = argv[0];
	if (argc > 1 && !strcmp(argv[1], EXECED)) {
		for (; count < argc - 2; count++)
			fds[count] = atoi(argv[2 + count]);
		seek_all(500);
		return 0;
	}
	if (argc > 1)
		make_flags();
	else
		make_kinds();
	for (int i = 0; i < count; i++) {
		int copy = dup(fds[i]);

		lseek(copy, 200 + i, SEEK_SET);
		dup2(fds[i], 90);
		lseek(90, 300 + i, SEEK_SET);
		close(copy);
	}
	run(forked);
	run(execs);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 5;
	for (int i = 0; i < count; i++)
		pass(pair[0], pair[1], i);
	unlink("kinds.tmp");
	return 0;
}
