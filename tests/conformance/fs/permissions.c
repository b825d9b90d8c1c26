/* Directories and files that their owner may not use; root may. */
#include "check.h"

#include <sys/stat.h>

int main(void)
{
	int root = geteuid() == 0, fd;
	DIR *dir;

	NEED(mkdir("closed", 0755) == 0);
	close(check_file("closed/f", "x"));
	close(check_file("readonly", "x"));
	NEED(chmod("readonly", 0444) == 0 && chmod("closed", 0444) == 0);

	/* Without x nothing in it can be named; with r its names can be read. */
	NEED((dir = opendir("closed")));
	CHECK(readdir(dir) != NULL);
	closedir(dir);
	fd = open("closed/f", O_RDONLY);
	CHECK(root ? fd >= 0 : fd < 0 && errno == EACCES);
	close(fd);
	if (!root) {
		CHECK_ERRNO(chdir("closed"), EACCES);
		CHECK_ERRNO(access("closed/f", F_OK), EACCES);
		CHECK_ERRNO(open("readonly", O_WRONLY), EACCES);
		CHECK_ERRNO(truncate("readonly", 0), EACCES);
	} else {
		NEED((fd = open("readonly", O_WRONLY)) >= 0);
		close(fd);
	}
	NEED(chmod("closed", 0555) == 0);
	if (!root) {
		CHECK_ERRNO(open("closed/new", O_CREAT | O_RDWR, 0600), EACCES);
		CHECK_ERRNO(unlink("closed/f"), EACCES);
		CHECK_ERRNO(mkdir("closed/d", 0755), EACCES);
		CHECK_ERRNO(rename("closed/f", "g"), EACCES);
		CHECK_ERRNO(link("readonly", "closed/l"), EACCES);
		CHECK_ERRNO(symlink("x", "closed/l"), EACCES);
	}
	/* A file that may not be written can be removed: that is the directory's business. */
	CHECK_EQ(unlink("readonly"), 0);
	/* A descriptor keeps the rights it was opened with. */
	fd = check_file("f", "");
	CHECK_EQ(chmod("f", 0), 0);
	CHECK_EQ(write(fd, "still", 5), 5);
	close(fd);
	/* So does the one that creates a file with no rights. */
	NEED((fd = open("none", O_CREAT | O_EXCL | O_RDWR, 0)) >= 0);
	CHECK_EQ(write(fd, "x", 1), 1);
	close(fd);
	NEED(chmod("closed", 0755) == 0);
	CHECK_EQ(unlink("closed/f"), 0);
	CHECK_EQ(rmdir("closed"), 0);
	CHECK_EQ(unlink("f"), 0);
	CHECK_EQ(unlink("none"), 0);
	return check_done();
}
