/* pipe and pipe2: order, ends, sizes, flags. SIGPIPE is ignored, so that a broken pipe is an
 * errno. */
#include "check.h"

#include <limits.h>
#include <signal.h>
#include <sys/ioctl.h>

int main(void)
{
	static char block[PIPE_BUF];
	char text[16] = { 0 };
	int p[2], waiting = -1;
	long filled = 0;

	NEED(pipe(p) == 0);
	CHECK_EQ(fcntl(p[0], F_GETFL) & O_ACCMODE, O_RDONLY);
	CHECK_EQ(fcntl(p[1], F_GETFL) & O_ACCMODE, O_WRONLY);
	CHECK_EQ(write(p[1], "hello", 5), 5);
	CHECK_EQ(write(p[1], "world", 5), 5);
	CHECK_EQ(ioctl(p[0], FIONREAD, &waiting), 0);
	CHECK_EQ(waiting, 10);
	CHECK_EQ(read(p[0], text, 3), 3);
	CHECK_EQ(read(p[0], text + 3, 12), 7);
	CHECK_STR(text, "helloworld");
	CHECK_ERRNO(read(p[1], text, 1), EBADF);
	CHECK_ERRNO(write(p[0], text, 1), EBADF);
	/* Reading goes on after the writer is gone, to the end. */
	CHECK_EQ(write(p[1], "last", 4), 4);
	close(p[1]);
	CHECK_EQ(read(p[0], text, 16), 4);
	CHECK_EQ(read(p[0], text, 16), 0);
	close(p[0]);

	NEED(pipe2(p, O_NONBLOCK | O_CLOEXEC) == 0);
	CHECK_EQ(fcntl(p[0], F_GETFD), FD_CLOEXEC);
	CHECK(fcntl(p[1], F_GETFL) & O_NONBLOCK);
	CHECK_ERRNO(read(p[0], text, 1), EAGAIN);
	while (write(p[1], block, sizeof block) == (ssize_t)sizeof block)
		filled += (long)sizeof block;
	CHECK_EQ(errno, EAGAIN);
	CHECK_EQ(filled, 65536);
	CHECK_EQ(fcntl(p[1], F_GETPIPE_SZ), 65536);
	/* A write of at most PIPE_BUF is all or nothing. */
	CHECK_EQ(read(p[0], block, 100), 100);
	CHECK_ERRNO(write(p[1], block, sizeof block), EAGAIN);
	signal(SIGPIPE, SIG_IGN);
	close(p[0]);
	CHECK_ERRNO(write(p[1], "x", 1), EPIPE);
	close(p[1]);
	CHECK_ERRNO(pipe2(p, 1 << 30), EINVAL);
	return check_done();
}
