/* rights PREFIX: a descriptor from below PREFIX goes to another process in a message, and is still
 * inside there. */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int send_fd(int socket, int fd)
{
	char room[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec byte = { "x", 1 };
	struct msghdr m = { .msg_iov = &byte, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof fd);
	return sendmsg(socket, &m, 0) == 1 ? 0 : -1;
}

static int receive_fd(int socket)
{
	char room[CMSG_SPACE(sizeof(int))], byte;
	struct iovec to = { &byte, 1 };
	struct msghdr m = { .msg_iov = &to, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	int fd;

	if (recvmsg(socket, &m, 0) != 1 || !CMSG_FIRSTHDR(&m))
		return -1;
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof fd);
	return fd;
}

int main(int argc, char **argv)
{
	char path[128], byte = 0;
	int pair[2], fd, status;

	mkdir(argv[1], 0700);
	sprintf(path, "%s/sent", argv[1]);
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return 2;
	if (!fork()) {
		int in = receive_fd(pair[1]), out = receive_fd(pair[1]);

		lseek(in, 100, SEEK_SET);
		lseek(out, 200, SEEK_SET);
		_exit(in < 0 || out < 0);
	}
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || write(fd, "s", 1) != 1 || send_fd(pair[0], fd) ||
	    send_fd(pair[0], open("/grates-test", O_RDONLY)) || wait(&status) < 0)
		return 3;
	unlink(path);
	return argc + byte > 2 || status;
}
