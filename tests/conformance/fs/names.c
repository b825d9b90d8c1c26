/* Lengths and shapes of path names. */
#include "check.h"

#include <limits.h>
#include <sys/stat.h>

int main(void)
{
	char name[NAME_MAX + 2], path[PATH_MAX + 1];
	struct stat st;
	int fd;

	memset(name, 'n', sizeof name - 1);
	name[NAME_MAX + 1] = 0;
	CHECK_ERRNO(open(name, O_CREAT | O_RDWR, 0644), ENAMETOOLONG);
	CHECK_ERRNO(mkdir(name, 0755), ENAMETOOLONG);
	name[NAME_MAX] = 0;
	NEED((fd = open(name, O_CREAT | O_RDWR, 0644)) >= 0);
	close(fd);
	CHECK_EQ(unlink(name), 0);

	/* PATH_MAX counts the NUL. */
	for (int i = 0; i < PATH_MAX; i++)
		path[i] = i % 2 ? '/' : '.';
	path[PATH_MAX] = 0;
	CHECK_ERRNO(stat(path, &st), ENAMETOOLONG);
	path[PATH_MAX - 1] = 0;
	CHECK_EQ(stat(path, &st), 0);
	CHECK(S_ISDIR(st.st_mode));

	NEED(mkdir("d", 0755) == 0);
	CHECK_EQ(stat("d/", &st), 0);
	CHECK_EQ(stat(".//d///.", &st), 0);
	CHECK_EQ(stat("d/..", &st), 0);
	CHECK_ERRNO(stat("d/missing/..", &st), ENOENT);
	CHECK_ERRNO(mkdir("d/.", 0755), EEXIST);
	CHECK_ERRNO(rmdir("d/."), EINVAL);
	CHECK_ERRNO(rmdir("d/.."), ENOTEMPTY);
	/* Bytes other than / and NUL are a name's own business. */
	NEED((fd = open("d/\xff\n \\", O_CREAT | O_RDWR, 0644)) >= 0);
	close(fd);
	CHECK_EQ(unlink("d/\xff\n \\"), 0);
	CHECK_EQ(rmdir("d/"), 0);
	return check_done();
}
