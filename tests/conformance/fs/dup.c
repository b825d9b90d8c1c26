/* dup, dup2, dup3, F_DUPFD: one file behind several numbers. */
#include "check.h"

#include <sys/resource.h>
#include <sys/syscall.h>

int main(void)
{
	struct rlimit limit;
	int fd = check_file("f", "0123456789"), other, third;
	char byte;

	NEED((other = dup(fd)) > fd);
	CHECK_EQ(read(fd, &byte, 1), 1);
	CHECK_EQ(read(other, &byte, 1), 1);
	CHECK_EQ(byte, '1');
	CHECK_EQ(lseek(other, 5, SEEK_SET), 5);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 5);

	/* Status flags belong to the file, close-on-exec to the number. */
	CHECK_EQ(fcntl(fd, F_SETFL, O_APPEND | O_NONBLOCK), 0);
	CHECK_EQ(fcntl(other, F_GETFL) & (O_APPEND | O_NONBLOCK), O_APPEND | O_NONBLOCK);
	CHECK_EQ(fcntl(fd, F_SETFD, FD_CLOEXEC), 0);
	CHECK_EQ(fcntl(other, F_GETFD), 0);
	CHECK_EQ(fcntl(dup(fd), F_GETFD), 0);

	CHECK_EQ(dup2(fd, 50), 50);
	CHECK_EQ(fcntl(50, F_GETFD), 0);
	CHECK_EQ(dup2(50, 50), 50);
	CHECK_EQ(dup3(fd, 51, O_CLOEXEC), 51);
	CHECK_EQ(fcntl(51, F_GETFD), FD_CLOEXEC);
	CHECK_ERRNO(dup3(fd, fd, 0), EINVAL);
	/* musl does not pass other flags on, so ask the kernel. */
	CHECK_ERRNO(syscall(SYS_dup3, (long)fd, 52L, (long)O_APPEND), EINVAL);
	CHECK_ERRNO(dup(-1), EBADF);
	CHECK_ERRNO(dup2(99, 50), EBADF);
	CHECK_ERRNO(dup2(fd, -1), EBADF);
	NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK_ERRNO(dup2(fd, (int)limit.rlim_cur), EBADF);
	CHECK_ERRNO(dup2(99, 99), EBADF);

	/* dup2 closes what was there: the other number still has its file. */
	NEED((third = open("f", O_RDONLY)) >= 0);
	CHECK_EQ(dup2(third, 50), 50);
	CHECK_EQ(lseek(50, 0, SEEK_CUR), 0);
	CHECK_EQ(lseek(51, 0, SEEK_CUR), 5);

	CHECK_EQ(fcntl(fd, F_DUPFD, 60), 60);
	CHECK_EQ(fcntl(fd, F_DUPFD, 60), 61);
	CHECK_EQ(fcntl(fd, F_DUPFD_CLOEXEC, 60), 62);
	CHECK_EQ(fcntl(62, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(60, F_GETFD), 0);
	CHECK_ERRNO(fcntl(fd, F_DUPFD, -1), EINVAL);
	CHECK_ERRNO(fcntl(fd, F_DUPFD, (int)limit.rlim_cur), EINVAL);
	CHECK_ERRNO(fcntl(99, F_GETFD), EBADF);

	CHECK_EQ(close(fd), 0);
	CHECK_EQ(lseek(60, 7, SEEK_SET), 7);
	CHECK_EQ(read(61, &byte, 1), 1);
	CHECK_EQ(byte, '7');
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
