/* sendfile and copy_file_range. */
#include "check.h"

#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>

static long copy(int from, int64_t *from_at, int to, int64_t *to_at, long length, long flags)
{
	return syscall(SYS_copy_file_range, (long)from, from_at, (long)to, to_at, length, flags);
}

int main(void)
{
	char text[16] = { 0 };
	int in = check_file("in", "0123456789"), out = check_file("out", "");
	int pair[2], ends[2], reader;
	off_t at = 3;
	int64_t from = 2, to = 5;

	CHECK_EQ(sendfile(out, in, &at, 4), 4);
	CHECK_EQ(at, 7);
	CHECK_EQ(lseek(in, 0, SEEK_CUR), 0);
	CHECK_EQ(lseek(out, 0, SEEK_CUR), 4);
	CHECK_EQ(sendfile(out, in, NULL, 100), 10);
	CHECK_EQ(lseek(in, 0, SEEK_CUR), 10);
	CHECK_EQ(sendfile(out, in, NULL, 100), 0);
	CHECK_EQ(pread(out, text, 15, 0), 14);
	CHECK_STR(text, "34560123456789");
	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	at = 0;
	CHECK_EQ(sendfile(pair[0], in, &at, 10), 10);
	CHECK_EQ(read(pair[1], text, 15), 10);
	at = -1;
	CHECK_ERRNO(sendfile(out, in, &at, 1), EINVAL);
	CHECK_ERRNO(sendfile(out, -1, NULL, 1), EBADF);
	CHECK_ERRNO(sendfile(-1, in, NULL, 1), EBADF);
	/* From an empty pipe, on which a read would wait. */
	NEED(pipe(ends) == 0);
	CHECK_ERRNO(sendfile(out, ends[0], NULL, 1), EINVAL);
	at = 0;
	CHECK_ERRNO(sendfile(out, ends[0], &at, 1), ESPIPE);

	CHECK_EQ(ftruncate(out, 0), 0);
	CHECK_EQ(lseek(out, 0, SEEK_SET), 0);
	CHECK_EQ(copy(in, &from, out, &to, 4, 0), 4);
	CHECK_EQ(from, 6);
	CHECK_EQ(to, 9);
	memset(text, 0, sizeof text);
	CHECK_EQ(pread(out, text, 16, 0), 9);
	CHECK_EQ(memcmp(text, "\0\0\0\0\0002345", 9), 0);
	CHECK_EQ(lseek(in, 8, SEEK_SET), 8);
	CHECK_EQ(copy(in, NULL, out, NULL, 100, 0), 2);
	CHECK_EQ(copy(in, NULL, out, NULL, 100, 0), 0);
	CHECK_ERRNO(copy(in, NULL, out, NULL, 1, 1), EINVAL);
	/* Within one file nothing overlaps behind its end. */
	CHECK_EQ(ftruncate(out, 9), 0);
	from = 20;
	to = 22;
	CHECK_EQ(copy(out, &from, out, &to, 4, 0), 0);
	from = 7;
	to = 9;
	CHECK_EQ(copy(out, &from, out, &to, 100, 0), 2);
	from = 2;
	to = 4;
	CHECK_ERRNO(copy(out, &from, out, &to, 4, 0), EINVAL);
	NEED((reader = open("out", O_RDONLY)) >= 0);
	CHECK_ERRNO(copy(in, NULL, reader, NULL, 1, 0), EBADF);
	CHECK_EQ(unlink("in"), 0);
	CHECK_EQ(unlink("out"), 0);
	return check_done();
}
