/* Requests about files: their size, their attributes, their blocks; and the mark in a stream. */
#include "check.h"

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define SIZE  0x5460
#define BLOCK 2
#define FLAGS _IOR('f', 1, long)

int main(void)
{
	int fd = check_file("f", "0123456789"), dir = open(".", O_RDONLY | O_DIRECTORY), n = -1, p[2], s;
	long flags = 0;
	long long size = -1;

	NEED(dir >= 0 && pipe(p) == 0 && (s = socket(AF_INET, SOCK_STREAM, 0)) >= 0);
	CHECK_EQ(ioctl(fd, SIZE, &size), 0);
	/* The size on the disk, which may still be 0. */
	CHECK(size >= 0 && size % 512 == 0);
	CHECK_EQ(ioctl(dir, SIZE, &size), 0);
	CHECK_ERRNO(ioctl(p[0], SIZE, &size), ENOTTY);
	CHECK_ERRNO(ioctl(fd, SIZE, (void *)8), EFAULT);
	CHECK_EQ(ioctl(fd, BLOCK, &n), 0);
	CHECK(n >= 512);
	/* Not every file system has them; what has them says them of a file that was just made: it can be
	 * changed. */
	if (ioctl(fd, FLAGS, &flags) == 0)
		CHECK_EQ(flags & 0x30, 0);
	else
		CHECK(errno == ENOTTY || errno == EOPNOTSUPP);
	CHECK_ERRNO(ioctl(p[0], FLAGS, &flags), ENOTTY);
	n = -1;
	CHECK_EQ(ioctl(s, SIOCATMARK, &n), 0);
	CHECK_EQ(n, 0);
	CHECK_ERRNO(ioctl(fd, SIOCATMARK, &n), ENOTTY);
	/* Leases and notices of directories: given, or refused as by a kernel without them. */
	n = fcntl(fd, F_GETLEASE);
	CHECK_EQ(n, F_UNLCK);
	close(fd);
	close(dir), close(p[0]), close(p[1]), close(s);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
