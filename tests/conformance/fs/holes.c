/* SEEK_DATA and SEEK_HOLE, where the filesystem knows holes. */
#include "check.h"

int main(void)
{
	int fd = check_file("f", "");

	CHECK_ERRNO(lseek(fd, 0, SEEK_DATA), ENXIO);
	CHECK_EQ(pwrite(fd, "x", 1, 1 << 20), 1);
	CHECK_ERRNO(lseek(fd, (1 << 20) + 1, SEEK_DATA), ENXIO);
	CHECK_EQ(lseek(fd, 1 << 20, SEEK_HOLE), (1 << 20) + 1);
	CHECK(lseek(fd, 0, SEEK_HOLE) == 0 || lseek(fd, 0, SEEK_HOLE) == (1 << 20) + 1);
	CHECK(lseek(fd, 0, SEEK_DATA) <= 1 << 20);
	CHECK_EQ(lseek(fd, 1 << 20, SEEK_DATA), 1 << 20);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
