/* Record locks of fcntl, as far as one process can see them, and flock between two opens. */
#include "check.h"

#include <sys/file.h>

static struct flock range(short type, off_t start, off_t length)
{
	return (struct flock){ .l_type = type, .l_whence = SEEK_SET, .l_start = start, .l_len = length };
}

static void records(int fd)
{
	struct flock lock = range(F_WRLCK, 10, 5);
	int reader;

	CHECK_EQ(fcntl(fd, F_SETLK, &lock), 0);
	/* A process never conflicts with itself. */
	lock = range(F_WRLCK, 0, 0);
	CHECK_EQ(fcntl(fd, F_GETLK, &lock), 0);
	CHECK_EQ(lock.l_type, F_UNLCK);
	lock = range(F_RDLCK, 12, 1);
	CHECK_EQ(fcntl(fd, F_SETLK, &lock), 0);
	lock = range(F_UNLCK, 0, 0);
	CHECK_EQ(fcntl(fd, F_SETLK, &lock), 0);
	lock = range(F_WRLCK, 0, 0);
	CHECK_EQ(fcntl(fd, F_SETLKW, &lock), 0);

	lock = range(99, 0, 0);
	CHECK_ERRNO(fcntl(fd, F_SETLK, &lock), EINVAL);
	lock = range(F_WRLCK, -1, 1);
	CHECK_ERRNO(fcntl(fd, F_SETLK, &lock), EINVAL);
	lock = range(F_UNLCK, 0, 0);
	CHECK_ERRNO(fcntl(fd, F_GETLK, &lock), EINVAL);
	lock = (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -2, .l_len = 0 };
	CHECK_EQ(fcntl(fd, F_SETLK, &lock), 0);

	NEED((reader = open("f", O_RDONLY)) >= 0);
	lock = range(F_WRLCK, 0, 1);
	CHECK_ERRNO(fcntl(reader, F_SETLK, &lock), EBADF);
	lock = range(F_RDLCK, 0, 1);
	CHECK_EQ(fcntl(reader, F_SETLK, &lock), 0);
	close(reader);
	lock = range(F_WRLCK, 0, 1);
	CHECK_ERRNO(fcntl(-1, F_SETLK, &lock), EBADF);
}

static void whole_files(int fd)
{
	int other = open("f", O_RDONLY), copy = dup(fd);

	NEED(other >= 0 && copy >= 0);
	CHECK_EQ(flock(fd, LOCK_EX), 0);
	CHECK_EQ(flock(copy, LOCK_EX | LOCK_NB), 0);
	CHECK_ERRNO(flock(other, LOCK_SH | LOCK_NB), EWOULDBLOCK);
	CHECK_EQ(flock(fd, LOCK_SH), 0);
	CHECK_EQ(flock(other, LOCK_SH | LOCK_NB), 0);
	CHECK_ERRNO(flock(fd, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	CHECK_EQ(flock(other, LOCK_UN), 0);
	CHECK_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
	CHECK_EQ(close(copy), 0);
	CHECK_ERRNO(flock(other, LOCK_EX | LOCK_NB), EWOULDBLOCK);
	CHECK_EQ(flock(copy = dup(fd), LOCK_UN), 0);
	close(copy);
	CHECK_EQ(flock(other, LOCK_EX | LOCK_NB), 0);
	CHECK_ERRNO(flock(fd, 0), EINVAL);
	CHECK_ERRNO(flock(-1, LOCK_SH), EBADF);
	close(other);
}

int main(void)
{
	int fd = check_file("f", "0123456789");

	records(fd);
	whole_files(fd);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
