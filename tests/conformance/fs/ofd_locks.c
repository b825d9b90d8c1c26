/* Open file description locks conflict within one process, which makes them visible to one. */
#include "check.h"

static struct flock range(short type, off_t start, off_t length)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
}

int main(void)
{
	int fd = check_file("f", "0123456789"), other = open("f", O_RDWR);
	struct flock lock = range(F_WRLCK, 2, 3);

	NEED(other >= 0);
	CHECK_EQ(fcntl(fd, F_OFD_SETLK, &lock), 0);
	lock = range(F_RDLCK, 4, 10);
	CHECK_ERRNO(fcntl(other, F_OFD_SETLK, &lock), EAGAIN);
	lock = range(F_RDLCK, 0, 0);
	CHECK_EQ(fcntl(other, F_OFD_GETLK, &lock), 0);
	CHECK_EQ(lock.l_type, F_WRLCK);
	CHECK_EQ(lock.l_start, 2);
	CHECK_EQ(lock.l_len, 3);
	CHECK_EQ(lock.l_pid, -1);
	lock = range(F_RDLCK, 5, 10);
	CHECK_EQ(fcntl(other, F_OFD_SETLK, &lock), 0);
	/* The lock goes with the last number of its description. */
	CHECK_EQ(dup2(fd, 50), 50);
	close(fd);
	lock = range(F_RDLCK, 2, 1);
	CHECK_ERRNO(fcntl(other, F_OFD_SETLK, &lock), EAGAIN);
	close(50);
	CHECK_EQ(fcntl(other, F_OFD_SETLK, &lock), 0);
	close(other);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
