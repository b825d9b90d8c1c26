/* FIONREAD, FIONBIO, FIOCLEX, and what is not a terminal. */
#include "check.h"

#include <sys/ioctl.h>
#include <termios.h>

int main(void)
{
	struct winsize size;
	int fd = check_file("f", "0123456789"), n = -1, on = 1, off = 0, p[2];

	CHECK_EQ(lseek(fd, 3, SEEK_SET), 3);
	CHECK_EQ(ioctl(fd, FIONREAD, &n), 0);
	CHECK_EQ(n, 7);
	NEED(pipe(p) == 0);
	CHECK_EQ(ioctl(p[0], FIONREAD, &n), 0);
	CHECK_EQ(n, 0);
	CHECK_EQ(ioctl(p[0], FIONBIO, &on), 0);
	CHECK(fcntl(p[0], F_GETFL) & O_NONBLOCK);
	CHECK_ERRNO(read(p[0], &n, 1), EAGAIN);
	CHECK_EQ(ioctl(p[0], FIONBIO, &off), 0);
	CHECK(!(fcntl(p[0], F_GETFL) & O_NONBLOCK));
	CHECK_EQ(ioctl(fd, FIOCLEX), 0);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(ioctl(fd, FIONCLEX), 0);
	CHECK_EQ(fcntl(fd, F_GETFD), 0);

	CHECK_ERRNO(ioctl(fd, TIOCGWINSZ, &size), ENOTTY);
	CHECK_EQ(isatty(fd), 0);
	CHECK_EQ(isatty(p[0]), 0);
	CHECK_ERRNO(tcgetattr(fd, &(struct termios){ 0 }), ENOTTY);
	CHECK_ERRNO(ioctl(-1, FIONREAD, &n), EBADF);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
