/* fcntl's flags: what can be changed, what cannot, and what is not there. */
#include "check.h"
#include <sys/syscall.h>

int main(void)
{
	int fd = check_file("f", "0123456789"), p[2];

	CHECK_EQ(fcntl(fd, F_GETFL) & ~(O_LARGEFILE | 0100000), O_RDWR);
	/* Only some flags can be set; the access mode and those of creation are ignored. */
	CHECK_EQ(fcntl(fd, F_SETFL, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_NONBLOCK), 0);
	CHECK_EQ(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK), O_RDWR | O_APPEND | O_NONBLOCK);
	CHECK_EQ(fcntl(fd, F_SETFL, 0), 0);
	CHECK_EQ(fcntl(fd, F_GETFL) & (O_ACCMODE | O_APPEND | O_NONBLOCK), O_RDWR);
	/* Only FD_CLOEXEC is kept. */
	CHECK_EQ(fcntl(fd, F_SETFD, 0xff), 0);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_SETFD, 2), 0);
	CHECK_EQ(fcntl(fd, F_GETFD), 0);
	CHECK_ERRNO(fcntl(fd, 9999, 0), EINVAL);
	CHECK_ERRNO(fcntl(-1, F_GETFL), EBADF);
	CHECK_ERRNO(fcntl(0x7fff, F_SETFL, 0), EBADF);
	CHECK_ERRNO(fcntl(fd, F_GETPIPE_SZ), EBADF);

	NEED(pipe(p) == 0);
	CHECK_ERRNO(fcntl(p[0], F_SETPIPE_SZ, -1), EINVAL);
	CHECK_ERRNO(fcntl(fd, F_SETPIPE_SZ, -1), EBADF);
	CHECK_EQ(fcntl(p[0], F_SETPIPE_SZ, 4096), 4096);
	CHECK_EQ(fcntl(p[1], F_GETPIPE_SZ), 4096);
	CHECK_EQ(posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL), 0);
	CHECK_EQ(posix_fadvise(p[0], 0, 0, POSIX_FADV_NORMAL), ESPIPE);
	CHECK_EQ(posix_fadvise(fd, 0, 0, 99), EINVAL);
	CHECK_EQ(lockf(fd, F_TLOCK, 5), 0);
	CHECK_EQ(lockf(fd, F_ULOCK, 0), 0);
	CHECK_EQ(unlink("f"), 0);
	/* The values before anybody has asked for signals, leases or news. */
	int ends[2];
	NEED(pipe(ends) == 0);
	CHECK_EQ(syscall(SYS_fcntl, (long)ends[0], (long)F_GETOWN, 0L), 0);
	CHECK_EQ(syscall(SYS_fcntl, (long)ends[0], (long)F_GETSIG, 0L), 0);
	CHECK_EQ(syscall(SYS_fcntl, (long)ends[0], (long)F_GETLEASE, 0L), F_UNLCK);
	CHECK_EQ(syscall(SYS_fcntl, (long)ends[0], 1026L /* F_NOTIFY */, 0L), 0);
	CHECK_EQ(syscall(SYS_fcntl, (long)ends[0], 1026L /* F_NOTIFY */, (long)0x80000000u /* DN_MULTISHOT */), 0);
	close(ends[0]);
	close(ends[1]);
	return check_done();
}
