/* A file made by O_TMPFILE gets a name through /proc/self/fd; /dev/fd/N opens what is open. */
#include "check.h"

#include <sys/stat.h>

int main(void)
{
	char path[64], text[8] = { 0 };
	struct stat st;
	int fd, again;

	if ((fd = open(".", O_TMPFILE | O_RDWR, 0600)) < 0)
		check_skip("no O_TMPFILE here");
	CHECK_EQ(write(fd, "text", 4), 4);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	CHECK_EQ(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW), 0);
	CHECK_ERRNO(linkat(AT_FDCWD, path, AT_FDCWD, "named", AT_SYMLINK_FOLLOW), EEXIST);
	NEED(stat("named", &st) == 0);
	CHECK_EQ(st.st_size, 4);
	CHECK_EQ(st.st_nlink, 1);
	snprintf(path, sizeof path, "/dev/fd/%d", fd);
	NEED((again = open(path, O_RDWR)) >= 0);
	CHECK_EQ(pread(again, text, 4, 0), 4);
	CHECK_STR(text, "text");
	close(again);
	close(fd);
	CHECK_ERRNO(open(path, O_RDONLY), ENOENT);
	CHECK_EQ(unlink("named"), 0);
	return check_done();
}
