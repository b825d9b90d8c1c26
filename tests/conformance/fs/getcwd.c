/* getcwd, chdir, fchdir. */
#include "check.h"

#include <limits.h>
#include <sys/stat.h>

int main(void)
{
	char small[1], start[PATH_MAX], deeper[PATH_MAX], want[PATH_MAX + 8];
	int fd, file;

	CHECK_ERRNO(getcwd(small, sizeof small), ERANGE);
	CHECK_ERRNO(getcwd(start, 0), EINVAL);
	NEED(getcwd(start, sizeof start) && start[0] == '/');

	NEED((fd = open(".", O_RDONLY | O_DIRECTORY)) >= 0);
	NEED(mkdir("sub", 0755) == 0);
	CHECK_EQ(chdir("sub"), 0);
	NEED(getcwd(deeper, sizeof deeper));
	snprintf(want, sizeof want, "%s/sub", strcmp(start, "/") ? start : "");
	CHECK_STR(deeper, want);
	CHECK_EQ(chdir(".."), 0);
	NEED(getcwd(deeper, sizeof deeper));
	CHECK_STR(deeper, start);

	CHECK_EQ(chdir("./sub/../sub/."), 0);
	CHECK_EQ(fchdir(fd), 0);
	NEED(getcwd(deeper, sizeof deeper));
	CHECK_STR(deeper, start);

	CHECK_ERRNO(chdir("missing"), ENOENT);
	CHECK_ERRNO(chdir(""), ENOENT);
	file = check_file("file", "x");
	CHECK_ERRNO(chdir("file"), ENOTDIR);
	CHECK_ERRNO(fchdir(file), ENOTDIR);
	CHECK_ERRNO(fchdir(-1), EBADF);

	/* A directory that was removed has no name any more. */
	CHECK_EQ(chdir("sub"), 0);
	CHECK_EQ(rmdir("../sub"), 0);
	CHECK_ERRNO(getcwd(deeper, sizeof deeper), ENOENT);
	CHECK_ERRNO(open("file", O_CREAT | O_RDWR, 0644), ENOENT);
	CHECK_EQ(fchdir(fd), 0);
	CHECK_EQ(chdir("/"), 0);
	NEED(getcwd(deeper, sizeof deeper));
	CHECK_STR(deeper, "/");
	CHECK_EQ(chdir(".."), 0);
	NEED(getcwd(deeper, sizeof deeper));
	CHECK_STR(deeper, "/");
	CHECK_EQ(chdir(start), 0);
	CHECK_EQ(unlink("file"), 0);
	close(fd);
	return check_done();
}
