/* Makes calls whose lines the test knows. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct iovec iov[2] = { { "ab", 2 }, { "cde\n", 4 } };
	struct sockaddr_un name = { AF_UNIX, "/tmp/none" };
	struct timespec t = { 0, 1000 };
	struct stat st;
	struct pollfd p;
	char buffer[64];
	int fd = open("calls.tmp", O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0640), s;

	write(fd, "tab\there \"quoted\" \001\0012\n", 22);
	writev(fd, iov, 2);
	pread(fd, buffer, sizeof buffer, 4);
	fstat(fd, &st);
	fcntl(fd, F_GETFL);
	fcntl(fd, F_SETFD, FD_CLOEXEC);
	p = (struct pollfd){ fd, POLLIN | POLLOUT, 0 };
	poll(&p, 1, 0);
	mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	access("none", R_OK | X_OK);
	unlink("calls.tmp");
	s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	connect(s, (struct sockaddr *)&name, sizeof name.sun_family + strlen(name.sun_path) + 1);
	nanosleep(&t, NULL);
	umask(027);
	syscall(999, 1L, 2L, 3L);
	/* With an argument, what few tests want. */
	if (argc > 1) {
		struct iovec into[2] = { { buffer, 2 }, { buffer + 8, 60 } };
		struct msghdr m = { .msg_iov = iov, .msg_iovlen = 1 };
		union {
			char bytes[CMSG_SPACE(sizeof(int))];
			struct cmsghdr head;
		} control = {
			.head = { .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS }
		};
		struct epoll_event e = { .events = EPOLLOUT, .data.u64 = 7 };
		int one = 1, pair[2], q;
		socklen_t length = sizeof one;
		off_t at = 0, to = 1;
		sigset_t all;
		fd_set set;
		struct timeval now = { 0, 0 };

		socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
		sendfile(pair[0], fd, &at, 3);
		readv(pair[1], into, 2);
		readv(-1, into, 2);
		copy_file_range(fd, &at, fd, &to, 0, 0);
		getcwd(buffer, sizeof buffer);
		setsockopt(pair[0], SOL_SOCKET, SO_KEEPALIVE, &one, sizeof one);
		getsockopt(pair[0], SOL_SOCKET, SO_KEEPALIVE, &one, &length);
		getsockopt(pair[0], IPPROTO_TCP, TCP_NODELAY, &one, &length);
		memcpy(CMSG_DATA(&control.head), &fd, sizeof fd);
		m.msg_control = &control;
		m.msg_controllen = sizeof control;
		sendmsg(pair[0], &m, 0);
		recvmsg(-1, &m, 0);
		q = epoll_create1(0);
		epoll_ctl(q, EPOLL_CTL_ADD, pair[0], &e);
		epoll_pwait(q, &e, 1, 0, NULL);
		FD_ZERO(&set);
		FD_SET(pair[1], &set);
		select(pair[1] + 1, &set, NULL, NULL, &now);
		prctl(PR_SET_NAME, "calls");
		prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
		getpriority(PRIO_PROCESS, 0);
		sched_get_priority_max(SCHED_FIFO);
		lseek(fd, 0, 9);
		sigfillset(&all);
		sigdelset(&all, SIGUSR1);
		syscall(SYS_rt_sigprocmask, SIG_BLOCK, &all, NULL, 8);
	}
	close(-1);
	return 5;
}
