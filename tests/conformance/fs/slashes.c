/* Trailing slashes and what they do to links, files and names that do not exist yet. */
#include "check.h"

#include <sys/stat.h>

int main(void)
{
	struct stat st;
	char text[16];
	int fd;

	NEED(mkdir("d/", 0755) == 0);
	close(check_file("f", "x"));
	NEED(symlink("d", "dl") == 0 && symlink("f", "fl") == 0 && symlink("nowhere", "nl") == 0);

	CHECK_EQ(lstat("dl", &st), 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_EQ(lstat("dl/", &st), 0);
	CHECK(S_ISDIR(st.st_mode));
	CHECK_EQ(lstat("dl/.", &st), 0);
	CHECK_ERRNO(stat("f/", &st), ENOTDIR);
	CHECK_ERRNO(stat("fl/", &st), ENOTDIR);
	CHECK_ERRNO(lstat("fl/", &st), ENOTDIR);
	CHECK_ERRNO(lstat("nl/", &st), ENOENT);
	CHECK_ERRNO(readlink("dl/", text, sizeof text), EINVAL);
	CHECK_ERRNO(access("f/", F_OK), ENOTDIR);
	CHECK_ERRNO(open("f/", O_RDONLY), ENOTDIR);
	CHECK_ERRNO(open("new/", O_RDWR | O_CREAT, 0644), EISDIR);
	CHECK_ERRNO(open("missing/", O_RDONLY), ENOENT);
	NEED((fd = open("dl/", O_RDONLY | O_NOFOLLOW)) >= 0);
	close(fd);

	CHECK_ERRNO(unlink("f/"), ENOTDIR);
	CHECK_ERRNO(unlink("fl/"), ENOTDIR);
	CHECK_ERRNO(unlink("d/"), EISDIR);
	CHECK_ERRNO(rmdir("dl/"), ENOTDIR);
	CHECK_ERRNO(mkdir("dl/", 0755), EEXIST);
	CHECK_ERRNO(mkdir("nl", 0755), EEXIST);
	CHECK_ERRNO(mkdir("f/", 0755), EEXIST);
	CHECK_ERRNO(rename("f/", "g"), ENOTDIR);
	CHECK_ERRNO(rename("f", "g/"), ENOTDIR);
	CHECK_ERRNO(link("f", "g/"), ENOENT);
	CHECK_ERRNO(link("f/", "g"), ENOTDIR);
	CHECK_ERRNO(symlink("f", "g/"), ENOENT);
	CHECK_ERRNO(truncate("f/", 0), ENOTDIR);
	CHECK_ERRNO(chmod("f/", 0600), ENOTDIR);
	CHECK_ERRNO(chdir("f/"), ENOTDIR);
	CHECK_EQ(chmod("dl/", 0700), 0);
	CHECK_EQ(stat("d", &st), 0);
	CHECK_EQ(st.st_mode & 0777, 0700);
	CHECK_EQ(rename("d/", "e/"), 0);
	CHECK_EQ(rename("e", "d"), 0);
	CHECK_EQ(mkdir("d//sub///", 0755), 0);
	CHECK_EQ(rmdir("d//sub//"), 0);
	CHECK_EQ(mkdir("d/x/../y", 0755) == -1 && errno == ENOENT, 1);

	CHECK_EQ(unlink("fl"), 0);
	CHECK_EQ(unlink("dl"), 0);
	CHECK_EQ(unlink("nl"), 0);
	CHECK_EQ(unlink("f"), 0);
	CHECK_EQ(rmdir("d/"), 0);
	return check_done();
}
