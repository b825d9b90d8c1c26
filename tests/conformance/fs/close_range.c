/* close_range: closing and marking many descriptors at once. */
#include "check.h"

#include <sys/syscall.h>

#ifndef CLOSE_RANGE_CLOEXEC
#define CLOSE_RANGE_CLOEXEC 4
#endif

static long range(unsigned first, unsigned last, unsigned flags)
{
	return syscall(SYS_close_range, (long)first, (long)last, (long)flags);
}

int main(void)
{
	int fd = check_file("f", "x");

	for (int n = 20; n < 30; n++)
		NEED(dup2(fd, n) == n);
	CHECK_EQ(range(22, 24, 0), 0);
	CHECK_EQ(fcntl(21, F_GETFD), 0);
	for (int n = 22; n <= 24; n++)
		CHECK_ERRNO(fcntl(n, F_GETFD), EBADF);
	CHECK_EQ(fcntl(25, F_GETFD), 0);
	CHECK_EQ(range(25, 26, CLOSE_RANGE_CLOEXEC), 0);
	CHECK_EQ(fcntl(25, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(27, F_GETFD), 0);
	CHECK_EQ(range(28, ~0u, 0), 0);
	CHECK_ERRNO(fcntl(28, F_GETFD), EBADF);
	CHECK_EQ(fcntl(27, F_GETFD), 0);
	CHECK_ERRNO(range(10, 9, 0), EINVAL);
	CHECK_ERRNO(range(10, 12, 1 << 20), EINVAL);
	CHECK_EQ(fcntl(fd, F_GETFD), 0);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
