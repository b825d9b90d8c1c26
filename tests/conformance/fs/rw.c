/* read, write, pread, pwrite, lseek: offsets, ends, holes and errors. */
#include "check.h"

#include <stdint.h>

int main(void)
{
	char text[16] = { 0 };
	int fd, pipes[2];

	NEED((fd = open("f", O_RDWR | O_CREAT | O_TRUNC, 0644)) >= 0);
	CHECK_EQ(read(fd, text, 4), 0);
	CHECK_EQ(write(fd, "0123456789", 10), 10);
	CHECK_EQ(write(fd, "x", 0), 0);
	CHECK_EQ(read(fd, text, 4), 0);
	CHECK_EQ(lseek(fd, 2, SEEK_SET), 2);
	CHECK_EQ(read(fd, text, 3), 3);
	CHECK_EQ(memcmp(text, "234", 3), 0);
	CHECK_EQ(lseek(fd, -1, SEEK_CUR), 4);
	CHECK_EQ(lseek(fd, -2, SEEK_END), 8);
	CHECK_EQ(read(fd, text, sizeof text), 2);

	CHECK_EQ(pread(fd, text, 4, 6), 4);
	CHECK_EQ(memcmp(text, "6789", 4), 0);
	CHECK_EQ(pread(fd, text, 4, 8), 2);
	CHECK_EQ(pread(fd, text, 4, 10), 0);
	CHECK_EQ(pread(fd, text, 4, 1000), 0);
	CHECK_EQ(pwrite(fd, "AB", 2, 1), 2);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 10);
	CHECK_EQ(pread(fd, text, 3, 0), 3);
	CHECK_EQ(memcmp(text, "0AB", 3), 0);

	CHECK_ERRNO(lseek(fd, -1, SEEK_SET), EINVAL);
	CHECK_ERRNO(lseek(fd, -11, SEEK_END), EINVAL);
	CHECK_ERRNO(lseek(fd, 0, 99), EINVAL);
	CHECK_ERRNO(lseek(-1, 0, SEEK_SET), EBADF);
	CHECK_ERRNO(pread(fd, text, 1, -1), EINVAL);
	CHECK_ERRNO(pwrite(fd, text, 1, -1), EINVAL);
	CHECK_ERRNO(read(-1, text, 1), EBADF);
	CHECK_ERRNO(write(1000, text, 1), EBADF);

	/* A hole reads as zeros; offsets beyond 4 GiB are no special case. */
	CHECK_EQ(lseek(fd, 0x123456789, SEEK_SET), 0x123456789);
	CHECK_EQ(write(fd, "end", 3), 3);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0x12345678c);
	CHECK_EQ(pread(fd, text, 4, 0x123456788), 4);
	CHECK_EQ(memcmp(text, "\0end", 4), 0);
	CHECK_EQ(pwrite(fd, "p", 1, 0x1ffffffff), 1);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 0x200000000);
	CHECK_EQ(pread(fd, text, 1, 100000), 1);
	CHECK_EQ(text[0], 0);

	NEED(pipe(pipes) == 0);
	CHECK_ERRNO(lseek(pipes[0], 0, SEEK_CUR), ESPIPE);
	CHECK_ERRNO(pread(pipes[0], text, 1, 0), ESPIPE);
	CHECK_ERRNO(pwrite(pipes[1], text, 1, 0), ESPIPE);
	close(pipes[0]);
	close(pipes[1]);
	CHECK_EQ(close(fd), 0);
	CHECK_ERRNO(close(fd), EBADF);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
