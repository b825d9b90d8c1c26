/*
 * turning WAY IN: one thread keeps changing what is at a number, between /dev/null and files in the
 * directory IN, by dup2. Meanwhile the number is sent to ourselves and what arrives is written to
 * (WAY sends; sends-within: by a socket with a name in IN), or children are forked that write to it
 * (WAY forks). The grates inside refuse pwrite: says whether a file in IN was ever written to, and
 * whether writes elsewhere worked.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILES 150

static atomic_int done;
static int number;
static const char *in;

static int need(int fd)
{
	if (fd < 0) {
		perror("turning");
		exit(1);
	}
	return fd;
}

/* A file is known again once it was sent: each is a new one. */
static void *turn(void *unused)
{
	char name[128];

	for (int i = 0; !atomic_load(&done); i++) {
		int file, null = need(open("/dev/null", O_WRONLY));

		snprintf(name, sizeof name, "%s/%d", in, i % FILES);
		file = need(open(name, O_WRONLY | O_CREAT, 0600));
		for (int k = 0; k < 3; k++) {
			need(dup2(file, number));
			need(dup2(null, number));
		}
		close(file);
		close(null);
	}
	return unused;
}

static int worked;

static void send_one(const int pair[2])
{
	char room[CMSG_SPACE(sizeof(int))] = { 0 }, byte = 'x';
	struct iovec bytes = { &byte, 1 };
	struct msghdr m = { .msg_iov = &bytes, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	int fd;

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &number, sizeof number);
	if (sendmsg(pair[0], &m, 0) != 1)
		return;
	if (recvmsg(pair[1], &m, 0) != 1 || !CMSG_FIRSTHDR(&m)) {
		fputs("a message without its descriptor\n", stderr);
		exit(1);
	}
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	worked += pwrite(fd, "x", 1, 0) == 1;
	close(fd);
}

static void fork_one(void)
{
	int status;
	pid_t child = fork();

	if (!child)
		_exit(pwrite(number, "x", 1, 0) != 1);
	if (child > 0 && waitpid(child, &status, 0) == child)
		worked += status == 0;
}

/* A pair whose sending end was connected by a name in IN, and is inside for that. */
static void pair_within(int pair[2])
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int listening = need(socket(AF_UNIX, SOCK_STREAM, 0));

	snprintf(name.sun_path, sizeof name.sun_path, "%s/socket", in);
	need(bind(listening, (struct sockaddr *)&name, sizeof name));
	need(listen(listening, 1));
	pair[0] = need(socket(AF_UNIX, SOCK_STREAM, 0));
	need(connect(pair[0], (struct sockaddr *)&name, sizeof name));
	pair[1] = need(accept(listening, NULL, NULL));
	close(listening);
	unlink(name.sun_path);
}

int main(int argc, char **argv)
{
	int pair[2], forks = argc > 2 && !strcmp(argv[1], "forks"), written = 0;
	pthread_t thread;
	struct stat st;

	in = argv[2];
	number = need(open("/dev/null", O_WRONLY));
	if (strcmp(argv[1], "sends-within"))
		need(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	else
		pair_within(pair);
	pthread_create(&thread, NULL, turn, NULL);
	for (int i = 0; i < (forks ? 300 : 3000); i++)
		if (forks)
			fork_one();
		else
			send_one(pair);
	atomic_store(&done, 1);
	pthread_join(thread, NULL);
	for (int i = 0; i < FILES; i++) {
		char name[128];

		snprintf(name, sizeof name, "%s/%d", in, i);
		written += !stat(name, &st) && st.st_size;
	}
	printf("%s, %s elsewhere\n", written ? "written" : "untouched", worked ? "written" : "nothing written");
	return 0;
}
