/* mkdir, rmdir, unlink and their *at forms. */
#include "check.h"

#include <sys/stat.h>

int main(void)
{
	struct stat st;
	int dir, fd;
	char text[4] = { 0 };

	umask(027);
	CHECK_EQ(mkdir("d", 0777), 0);
	NEED(stat("d", &st) == 0);
	CHECK_EQ(st.st_mode & 0777, 0750);
	CHECK_ERRNO(mkdir("d", 0777), EEXIST);
	CHECK_ERRNO(mkdir("a/b", 0777), ENOENT);
	close(check_file("f", "abc"));
	CHECK_ERRNO(mkdir("f", 0777), EEXIST);
	CHECK_ERRNO(mkdir("f/x", 0777), ENOTDIR);
	CHECK_ERRNO(mkdir("", 0777), ENOENT);

	NEED((dir = open("d", O_RDONLY)) >= 0);
	CHECK_EQ(mkdirat(dir, "e", 0755), 0);
	CHECK_ERRNO(rmdir("d"), ENOTEMPTY);
	CHECK_ERRNO(unlinkat(dir, "e", 0), EISDIR);
	CHECK_EQ(unlinkat(dir, "e", AT_REMOVEDIR), 0);
	CHECK_ERRNO(unlinkat(dir, "e", AT_REMOVEDIR), ENOENT);
	CHECK_ERRNO(unlinkat(dir, "../f", AT_REMOVEDIR), ENOTDIR);
	CHECK_ERRNO(unlinkat(dir, "../f", 1 << 30), EINVAL);
	CHECK_ERRNO(unlinkat(-1, "f", 0), EBADF);
	CHECK_ERRNO(mkdirat(-1, "x", 0755), EBADF);

	CHECK_ERRNO(rmdir("f"), ENOTDIR);
	CHECK_ERRNO(rmdir("missing"), ENOENT);
	CHECK_ERRNO(rmdir("."), EINVAL);
	CHECK_ERRNO(unlink("d"), EISDIR);
	CHECK_ERRNO(unlink("missing"), ENOENT);
	CHECK_ERRNO(unlink(""), ENOENT);

	/* An open file outlives its name. */
	NEED((fd = open("f", O_RDWR)) >= 0);
	CHECK_EQ(unlink("f"), 0);
	NEED(fstat(fd, &st) == 0);
	CHECK_EQ(st.st_nlink, 0);
	CHECK_EQ(read(fd, text, 3), 3);
	CHECK_STR(text, "abc");
	close(fd);
	/* A link is removed, not what it names. */
	NEED(symlink("d", "link") == 0);
	CHECK_ERRNO(rmdir("link"), ENOTDIR);
	CHECK_ERRNO(unlink("link/"), ENOTDIR);
	CHECK_EQ(unlink("link"), 0);
	close(dir);
	CHECK_EQ(rmdir("d"), 0);
	return check_done();
}
