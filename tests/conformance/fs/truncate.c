/* truncate, ftruncate, fallocate, posix_fallocate. */
#include "check.h"

#include <sys/stat.h>

static off_t size_of(int fd)
{
	struct stat st;

	NEED(fstat(fd, &st) == 0);
	return st.st_size;
}

int main(void)
{
	char text[8] = { 0 };
	int reader, fd = check_file("f", "0123456789");

	CHECK_EQ(ftruncate(fd, 4), 0);
	CHECK_EQ(size_of(fd), 4);
	CHECK_EQ(truncate("f", 8), 0);
	CHECK_EQ(pread(fd, text, 8, 0), 8);
	CHECK_EQ(memcmp(text, "0123\0\0\0\0", 8), 0);
	CHECK_EQ(ftruncate(fd, 0x180000000), 0);
	CHECK_EQ(size_of(fd), 0x180000000);
	CHECK_EQ(truncate("f", 0), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);

	CHECK_ERRNO(ftruncate(fd, -1), EINVAL);
	CHECK_ERRNO(truncate("missing", 0), ENOENT);
	CHECK_ERRNO(ftruncate(-1, 0), EBADF);
	CHECK_ERRNO(truncate(".", 0), EISDIR);
	NEED((reader = open("f", O_RDONLY)) >= 0);
	CHECK_ERRNO(ftruncate(reader, 0), EINVAL);

	if (fallocate(fd, 0, 100, 50) == 0) {
		CHECK_EQ(size_of(fd), 150);
		CHECK_EQ(fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, 1000), 0);
		CHECK_EQ(size_of(fd), 150);
		CHECK_EQ(pwrite(fd, "abcdefgh", 8, 0), 8);
		if (fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 2, 3) == 0) {
			CHECK_EQ(pread(fd, text, 8, 0), 8);
			CHECK_EQ(memcmp(text, "ab\0\0\0fgh", 8), 0);
		} else {
			CHECK_EQ(errno, EOPNOTSUPP);
		}
		CHECK_ERRNO(fallocate(fd, 0, -1, 10), EINVAL);
		CHECK_ERRNO(fallocate(fd, 0, 0, 0), EINVAL);
		CHECK_ERRNO(fallocate(reader, 0, 0, 10), EBADF);
	} else {
		CHECK_EQ(errno, EOPNOTSUPP);
	}
	CHECK_EQ(posix_fallocate(fd, 0, 300), 0);
	CHECK_EQ(size_of(fd), 300);
	close(reader);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
