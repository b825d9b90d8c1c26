/* splice and tee between pipes and files, sync_file_range. */
#include "check.h"

#include <signal.h>
#include <sys/resource.h>

/* The limit on the size of files holds for what the kernel moves, too. */
static void limited(int fd, const int p[2])
{
	off_t at = 998;
	struct rlimit limit;

	signal(SIGXFSZ, SIG_IGN);
	NEED(getrlimit(RLIMIT_FSIZE, &limit) == 0);
	limit.rlim_cur = 1000;
	NEED(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	CHECK_EQ(write(p[1], "pipe", 4), 4);
	CHECK_EQ(splice(p[0], NULL, fd, &at, 4, 0), 2);
	CHECK_ERRNO(splice(p[0], NULL, fd, &at, 4, 0), EFBIG);
}

int main(void)
{
	char text[16] = { 0 };
	off_t offset = 2;
	int fd = check_file("f", "0123456789"), p[2], q[2];

	NEED(pipe(p) == 0 && pipe(q) == 0);
	NEED(splice(fd, &offset, p[1], NULL, 5, 0) == 5);
	CHECK_EQ(offset, 7);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 0);
	CHECK_EQ(tee(p[0], q[1], 16, 0), 5);
	CHECK_EQ(read(q[0], text, sizeof text), 5);
	CHECK_STR(text, "23456");
	offset = 9;
	CHECK_EQ(splice(p[0], NULL, fd, &offset, 16, SPLICE_F_MOVE), 5);
	memset(text, 0, sizeof text);
	CHECK_EQ(pread(fd, text, 15, 0), 14);
	CHECK_STR(text, "01234567823456");
	CHECK_ERRNO(splice(p[0], NULL, q[1], NULL, 1, SPLICE_F_NONBLOCK), EAGAIN);
	CHECK_ERRNO(splice(fd, NULL, fd, NULL, 1, 0), EINVAL);
	CHECK_ERRNO(splice(p[0], &offset, q[1], NULL, 1, 0), ESPIPE);
	CHECK_ERRNO(splice(fd, NULL, p[1], NULL, 1, 0x1000), EINVAL);
	CHECK_ERRNO(splice(-1, NULL, p[1], NULL, 1, 0), EBADF);
	CHECK_ERRNO(tee(fd, p[1], 1, 0), EINVAL);
	CHECK_EQ(sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE), 0);
	CHECK_ERRNO(sync_file_range(fd, -1, 0, 0), EINVAL);
	CHECK_ERRNO(sync_file_range(fd, 0, 0, 99), EINVAL);
	CHECK_ERRNO(sync_file_range(p[0], 0, 0, 0), ESPIPE);
	limited(fd, p);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
