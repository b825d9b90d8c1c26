/* A tree deeper than PATH_MAX can name from the top, walked with relative steps and descriptors. */
#include "check.h"

#include <limits.h>
#include <sys/stat.h>

#define LEVELS 60

int main(void)
{
	char name[101], big[3 * PATH_MAX];
	int start, fd;

	memset(name, 'n', 100);
	name[100] = 0;
	NEED((start = open(".", O_RDONLY)) >= 0);
	for (int i = 0; i < LEVELS; i++)
		NEED(mkdir(name, 0755) == 0 && chdir(name) == 0);
	NEED((fd = open("file", O_CREAT | O_RDWR, 0644)) >= 0);
	CHECK_EQ(write(fd, "deep", 4), 4);
	close(fd);
	/* The path is longer than a page; Linux says so with ENAMETOOLONG, musl and glibc may find it
	 * otherwise. */
	errno = 0;
	if (!getcwd(big, PATH_MAX))
		CHECK(errno == ENAMETOOLONG || errno == ERANGE);
	CHECK_EQ(access("file", R_OK), 0);
	CHECK_EQ(access("../../file", R_OK), -1);
	CHECK_EQ(unlink("file"), 0);
	for (int i = 0; i < LEVELS; i++)
		NEED(chdir("..") == 0 && rmdir(name) == 0);
	NEED((fd = openat(start, ".", O_RDONLY)) >= 0);
	close(fd);
	return check_done();
}
