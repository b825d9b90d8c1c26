/* readv, writev, preadv, pwritev, preadv2, pwritev2. */
#include "check.h"

#include <limits.h>
#include <sys/uio.h>

int main(void)
{
	char a[] = "abcd", b[] = "efghijkl", c[16] = { 0 };
	struct iovec out[3] = { { a, 4 }, { NULL, 0 }, { b, 8 } }, in[2] = { { c, 5 }, { c + 8, 8 } };
	static struct iovec many[IOV_MAX + 1];
	int fd = check_file("f", "");

	CHECK_EQ(writev(fd, out, 3), 12);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_EQ(readv(fd, in, 2), 12);
	CHECK_EQ(memcmp(c, "abcde\0\0\0fghijkl", 15), 0);
	CHECK_EQ(readv(fd, in, 2), 0);

	CHECK_EQ(preadv(fd, in, 2, 10), 2);
	CHECK_EQ(memcmp(c, "kl", 2), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 12);
	CHECK_EQ(pwritev(fd, out, 1, 0x100000002), 4);
	CHECK_EQ(lseek(fd, 0, SEEK_END), 0x100000006);
	CHECK_EQ(preadv(fd, in, 1, 0x100000003), 3);
	CHECK_EQ(memcmp(c, "bcd", 3), 0);

	CHECK_EQ(writev(fd, out, 0), 0);
	CHECK_ERRNO(readv(fd, in, -1), EINVAL);
	CHECK_ERRNO(readv(fd, many, IOV_MAX + 1), EINVAL);
	CHECK_EQ(readv(fd, many, IOV_MAX), 0);
	CHECK_ERRNO(preadv(fd, in, 1, -1), EINVAL);
	CHECK_ERRNO(writev(-1, out, 1), EBADF);
	for (int i = 0; i <= IOV_MAX; i++)
		many[i] = (struct iovec){ a, 4 };
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	CHECK_EQ(writev(fd, many, IOV_MAX), 4 * IOV_MAX);
#ifdef RWF_APPEND
	/* Offset -1 is the file's own position. */
	CHECK_EQ(lseek(fd, 1, SEEK_SET), 1);
	CHECK_EQ(preadv2(fd, in, 1, -1, 0), 5);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 6);
	CHECK_EQ(pwritev2(fd, out, 1, 0, 0), 4);
	CHECK_ERRNO(preadv2(fd, in, 1, 0, 1 << 30), EOPNOTSUPP);
#endif
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
