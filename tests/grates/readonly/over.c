/* Below /tmp, which is allowed, files are made and changed from a directory's number and by their
 * own; elsewhere nothing is. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define CHECK(x) ((x) ? (void)0 : (failures++, (void)printf("line %d: %s (errno %d)\n", __LINE__, #x, errno)))

int main(void)
{
	int failures = 0, dir = open("/tmp", O_RDONLY | O_DIRECTORY), root = open("/", O_RDONLY | O_DIRECTORY);
	int fd = openat(dir, "x", O_CREAT | O_RDWR, 0600);

	CHECK(fd >= 0 && !ftruncate(fd, 10) && !fchmod(fd, 0644) && !mkdirat(dir, "d", 0700) &&
	    !renameat(dir, "x", dir, "d/x"));
	CHECK(!ftruncate(fd, 20) && !unlinkat(dir, "d/x", 0) && !unlinkat(dir, "d", AT_REMOVEDIR));
	CHECK(openat(root, "y", O_CREAT | O_RDWR, 0600) < 0 && errno == EROFS && mkdirat(root, "z", 0700) < 0 &&
	    errno == EROFS);
	fd = openat(root, "in", O_RDONLY);
	CHECK(fd >= 0 && fchmod(fd, 0600) < 0 && errno == EROFS);
	return failures != 0;
}
