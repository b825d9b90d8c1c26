/* splice and tee between pipes and files, sync_file_range. */
#include "check.h"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

/* Ends, rights, and a pipe that is full or empty. */
static void ends(int fd, const int p[2])
{
	static char block[200000];
	int only_reads, appends, directory;
	int64_t moved = 0;
	ssize_t r;
	loff_t at = 1000;

	NEED((only_reads = open("f", O_RDONLY)) >= 0 && (appends = open("f", O_WRONLY | O_APPEND)) >= 0 &&
	    (directory = open(".", O_RDONLY)) >= 0);
	CHECK_EQ(splice(fd, &at, p[1], NULL, 5, 0), 0);
	CHECK_EQ(splice(fd, NULL, p[1], NULL, 0, 0), 0);
	CHECK_ERRNO(splice(p[0], NULL, only_reads, NULL, 1, SPLICE_F_NONBLOCK), EBADF);
	CHECK_ERRNO(splice(appends, NULL, p[1], NULL, 1, 0), EBADF);
	CHECK_ERRNO(splice(p[0], NULL, appends, NULL, 1, SPLICE_F_NONBLOCK), EINVAL);
	CHECK_ERRNO(splice(directory, NULL, p[1], NULL, 1, 0), EINVAL);
	CHECK_ERRNO(splice(p[0], NULL, fd, NULL, 1, SPLICE_F_NONBLOCK), EAGAIN);
	CHECK_ERRNO(splice(fd, NULL, 4000, NULL, 1, 0), EBADF);
	for (size_t i = 0; i < sizeof block; i++)
		block[i] = (char)(i / 7);
	CHECK_EQ(pwrite(fd, block, sizeof block, 0), sizeof block);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	while ((r = splice(fd, NULL, p[1], NULL, sizeof block, SPLICE_F_NONBLOCK)) > 0)
		moved += r;
	/* How much a pipe holds of a file depends on how that lies in memory. */
	CHECK(r ? errno == EAGAIN && moved >= 4096 : moved == sizeof block);
	CHECK_EQ(lseek(fd, 0, SEEK_CUR), moved);
	at = 300000;
	for (int64_t left = moved; left; left -= r)
		NEED((r = splice(p[0], NULL, fd, &at, (size_t)left, 0)) > 0);
	CHECK_EQ(at, 300000 + moved);
	NEED(pread(fd, block, (size_t)moved, 300000) == moved);
	for (int64_t i = 0; i < moved; i++)
		NEED(block[i] == (char)(i / 7));
	CHECK_EQ(ftruncate(fd, 14), 0);
	CHECK_EQ(lseek(fd, 0, SEEK_SET), 0);
	close(only_reads);
	close(appends);
	close(directory);
}

/* A pipe that somebody else fills, and then closes. */
static void waits(int fd)
{
	loff_t at = 20;
	int p[2], status;

	NEED(pipe(p) == 0);
	if (!fork()) {
		usleep(30000);
		_exit(write(p[1], "late", 4) != 4);
	}
	close(p[1]);
	CHECK_EQ(splice(p[0], NULL, fd, &at, 100, 0), 4);
	CHECK_EQ(splice(p[0], NULL, fd, &at, 100, 0), 0);
	CHECK_EQ(at, 24);
	CHECK(wait(&status) > 0 && !status);
	close(p[0]);
	CHECK_EQ(ftruncate(fd, 14), 0);
}

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
	ends(fd, p);
	waits(fd);
	limited(fd, p);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
