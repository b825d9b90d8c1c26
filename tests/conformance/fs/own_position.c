/* preadv2 and pwritev2: an offset of -1 is the file's own position, whatever the flags; other
 * negative offsets fail. */
#include "check.h"

#include <signal.h>
#include <sys/uio.h>

#ifndef RWF_APPEND
#define RWF_APPEND 0x10
#endif
#define AT_ONCE 8

static char room[3];
static struct iovec out = { "abcdef", 6 }, in = { room, 3 };

static void check_file_position(int fd)
{
	CHECK_EQ(pwritev2(fd, &out, 1, -1, 0), 6);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 6);
	CHECK_EQ(pwritev2(fd, &out, 1, -1, 2), 6);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 12);
	/* At the end, and the position stays unless it is the one that was asked for. */
	CHECK_EQ(lseek(fd, 1, SEEK_SET), 1);
	CHECK_EQ(pwritev2(fd, &out, 1, 0, RWF_APPEND), 6);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 1);
	CHECK_EQ(pwritev2(fd, &out, 1, -1, RWF_APPEND), 6);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 24);
	CHECK_EQ(lseek(fd, 1, SEEK_SET), 1);
	CHECK_EQ(preadv2(fd, &in, 1, -1, 0), 3);
	CHECK_EQ(memcmp(room, "bcd", 3), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4);
	CHECK_EQ(preadv2(fd, &in, 1, 2, 0), 3);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), 4);
}

static void check_refusals(int fd)
{
	int only;

	CHECK_ERRNO(preadv2(fd, &in, 1, -2, 0), EINVAL);
	CHECK_ERRNO(pwritev2(fd, &out, 1, -2, 0), EINVAL);
	CHECK_ERRNO(preadv(fd, &in, 1, -1), EINVAL);
	CHECK_ERRNO(pwritev(fd, &out, 1, -1), EINVAL);
	CHECK_ERRNO(pread(fd, room, 1, -1), EINVAL);
	CHECK_ERRNO(preadv2(fd, &in, 1, -1, 0x40000000), EOPNOTSUPP);
	CHECK_ERRNO(preadv2(fd, &in, -1, -1, 0), EINVAL);
	CHECK_ERRNO(preadv2(-1, &in, 1, -1, 0), EBADF);
	CHECK_ERRNO(preadv2(fd, (void *)8, 1, -1, 0), EFAULT);
	CHECK_EQ(preadv2(fd, NULL, 0, -1, 0), 0);
	NEED((only = open("f", O_WRONLY)) >= 0);
	CHECK_ERRNO(preadv2(only, &in, 1, -1, 0), EBADF);
	close(only);
	NEED((only = open("f", O_RDONLY)) >= 0);
	CHECK_ERRNO(pwritev2(only, &out, 1, -1, 0), EBADF);
	close(only);
}

/* A pipe has no positions, not even one of its own, and takes only -1. */
static void check_pipe(void)
{
	int p[2];

	NEED(pipe(p) == 0);
	CHECK_EQ(pwritev2(p[1], &out, 1, -1, 0), 6);
	CHECK_ERRNO(pwritev2(p[1], &out, 1, 3, 0), ESPIPE);
	CHECK_ERRNO(preadv2(p[0], &in, 1, 0, 0), ESPIPE);
	CHECK_ERRNO(preadv(p[0], &in, 1, 0), ESPIPE);
	CHECK_EQ(preadv2(p[0], &in, 1, -1, 0), 3);
	CHECK_EQ(preadv2(p[0], &in, 1, -1, AT_ONCE), 3);
	CHECK_ERRNO(preadv2(p[0], &in, 1, -1, AT_ONCE), EAGAIN);
	close(p[0]);
	signal(SIGPIPE, SIG_IGN);
	CHECK_ERRNO(pwritev2(p[1], &out, 1, -1, 0), EPIPE);
	close(p[1]);
}

int main(void)
{
	int fd = check_file("f", "");

	check_file_position(fd);
	check_refusals(fd);
	check_pipe();
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
