/* stat, lstat, fstat, fstatat, statx: every field that Linux promises something about. */
#include "check.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>

static void regular(void)
{
	struct stat by_path, by_fd;
	struct timespec now;
	int fd = check_file("f", "0123456789");

	NEED(stat("f", &by_path) == 0 && fstat(fd, &by_fd) == 0);
	CHECK_EQ(by_path.st_ino, by_fd.st_ino);
	CHECK_EQ(by_path.st_dev, by_fd.st_dev);
	CHECK(S_ISREG(by_path.st_mode));
	CHECK_EQ(by_path.st_mode & 07777, 0644);
	CHECK_EQ(by_path.st_nlink, 1);
	CHECK_EQ(by_path.st_uid, geteuid());
	CHECK_EQ(by_path.st_size, 10);
	CHECK(by_path.st_blksize >= 512);
	CHECK_EQ(by_path.st_rdev, 0);
	clock_gettime(CLOCK_REALTIME, &now);
	CHECK(now.tv_sec - by_path.st_mtim.tv_sec < 5 && by_path.st_mtim.tv_sec - now.tv_sec < 5);
	CHECK(by_path.st_mtim.tv_nsec >= 0 && by_path.st_mtim.tv_nsec < 1000000000);
	CHECK_EQ(pwrite(fd, "x", 1, 0x150000000), 1);
	NEED(fstat(fd, &by_fd) == 0);
	CHECK_EQ(by_fd.st_size, 0x150000001);
	CHECK(by_fd.st_blocks < 1000);
	close(fd);
}

static void links(void)
{
	struct stat st;

	NEED(symlink("f", "link") == 0 && link("f", "second") == 0);
	NEED(lstat("link", &st) == 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_EQ(st.st_size, 1);
	NEED(stat("link", &st) == 0);
	CHECK(S_ISREG(st.st_mode));
	CHECK_EQ(st.st_nlink, 2);
	CHECK_EQ(unlink("second"), 0);
	NEED(fstatat(AT_FDCWD, "link", &st, AT_SYMLINK_NOFOLLOW) == 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_ERRNO(fstatat(AT_FDCWD, "link", &st, 1 << 30), EINVAL);
	CHECK_EQ(unlink("link"), 0);
}

static void others(void)
{
	struct stat st;
	int pipes[2], fd;

	NEED(mkdir("d", 0700) == 0 && mkdir("d/e", 0700) == 0);
	NEED(stat("d", &st) == 0);
	CHECK(S_ISDIR(st.st_mode));
	CHECK_EQ(st.st_mode & 0777, 0700);
	NEED((fd = open("d", O_RDONLY)) >= 0);
	CHECK_EQ(fstatat(fd, "e", &st, 0), 0);
	CHECK_EQ(fstatat(fd, "", &st, AT_EMPTY_PATH), 0);
	CHECK_ERRNO(fstatat(fd, "", &st, 0), ENOENT);
	close(fd);
	CHECK_EQ(rmdir("d/e"), 0);
	CHECK_EQ(rmdir("d"), 0);
	NEED(pipe(pipes) == 0 && fstat(pipes[0], &st) == 0);
	CHECK(S_ISFIFO(st.st_mode));
	close(pipes[0]);
	close(pipes[1]);
	CHECK_ERRNO(stat("missing", &st), ENOENT);
	CHECK_ERRNO(stat("f/x", &st), ENOTDIR);
	CHECK_ERRNO(stat("", &st), ENOENT);
	CHECK_ERRNO(fstat(-1, &st), EBADF);
	CHECK_ERRNO(fstatat(-1, "f", &st, 0), EBADF);
}

int main(void)
{
	regular();
	links();
	others();
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
