/* vmsplice: into a pipe and out of one. */
#include "../check.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

static char big[1 << 20];

int main(void)
{
	char first[8] = "one, ", second[8] = "two", out[16] = "", more[16] = "";
	struct iovec iov[2] = { { first, 5 }, { second, 3 } };
	struct iovec in[2] = { { out, 4 }, { more, sizeof more } };
	struct iovec all = { big, sizeof big }, bad = { (void *)8, 100 };
	int pipes[2], fd;
	ssize_t size;

	NEED(pipe(pipes) == 0);
	CHECK_EQ(vmsplice(pipes[1], iov, 2, 0), 8);
	CHECK_EQ(vmsplice(pipes[0], in, 2, 0), 8);
	CHECK_STR(out, "one,");
	CHECK_STR(more, " two");
	CHECK_EQ(vmsplice(pipes[1], iov, 0, 0), 0);
	CHECK_ERRNO(vmsplice(pipes[1], iov, 2, 64), EINVAL);
	CHECK_ERRNO(vmsplice(pipes[1], iov, 2000, 0), EINVAL);
	CHECK_ERRNO(vmsplice(pipes[1], &bad, 1, 0), EFAULT);
	CHECK_ERRNO(vmsplice(pipes[0], in, 2, SPLICE_F_NONBLOCK), EAGAIN);
	/* As much as there is room for. */
	size = vmsplice(pipes[1], &all, 1, SPLICE_F_NONBLOCK);
	CHECK(size > 0 && size < (ssize_t)sizeof big);
	CHECK_ERRNO(vmsplice(pipes[1], &all, 1, SPLICE_F_NONBLOCK), EAGAIN);
	while (size > 0) {
		ssize_t got = vmsplice(pipes[0], &all, 1, SPLICE_F_NONBLOCK);
		NEED(got > 0);
		size -= got;
	}
	CHECK_EQ(size, 0);
	fd = check_file("file", "x");
	CHECK_ERRNO(vmsplice(fd, iov, 2, 0), EBADF);
	CHECK_ERRNO(vmsplice(1000, iov, 2, 0), EBADF);
	close(fd);
	unlink("file");
	signal(SIGPIPE, SIG_IGN);
	close(pipes[0]);
	CHECK_ERRNO(vmsplice(pipes[1], iov, 2, 0), EPIPE);
	close(pipes[1]);
	return check_done();
}
