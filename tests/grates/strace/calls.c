/* Makes calls whose lines the test knows. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

int main(void)
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
	close(-1);
	return 5;
}
