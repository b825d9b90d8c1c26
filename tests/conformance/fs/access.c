/* access, faccessat and eaccess, as root and as anyone else. */
#include "check.h"

#include <sys/stat.h>

int main(void)
{
	int dir = -1, root = geteuid() == 0;

	close(check_file("f", "x"));
	CHECK_EQ(access("f", F_OK), 0);
	CHECK_EQ(access("f", R_OK | W_OK), 0);
	CHECK_ERRNO(access("f", X_OK), EACCES);
	CHECK_ERRNO(access("missing", F_OK), ENOENT);
	CHECK_ERRNO(access("f/x", F_OK), ENOTDIR);
	CHECK_ERRNO(access("f", 8), EINVAL);

	NEED(chmod("f", 0) == 0);
	if (root) {
		/* Root may read and write anything, but execute only what someone may. */
		CHECK_EQ(access("f", R_OK | W_OK), 0);
		CHECK_ERRNO(access("f", X_OK), EACCES);
	} else {
		CHECK_ERRNO(access("f", R_OK), EACCES);
		CHECK_ERRNO(open("f", O_RDONLY), EACCES);
	}
	NEED(chmod("f", 0100) == 0);
	CHECK_EQ(access("f", X_OK), 0);

	NEED(mkdir("d", 0755) == 0 && (dir = open("d", O_RDONLY)) >= 0);
	CHECK_EQ(faccessat(dir, "../f", F_OK, 0), 0);
	CHECK_EQ(faccessat(dir, ".", W_OK | X_OK, AT_EACCESS), 0);
	CHECK_ERRNO(faccessat(-1, "f", F_OK, 0), EBADF);
	CHECK_ERRNO(faccessat(dir, "f", F_OK, 0), ENOENT);
	NEED(symlink("nowhere", "link") == 0);
	CHECK_ERRNO(access("link", F_OK), ENOENT);
	close(dir);
	if (!root) {
		NEED(chmod("d", 0) == 0);
		CHECK_ERRNO(access("d/x", F_OK), EACCES);
	}
	CHECK_EQ(unlink("link"), 0);
	CHECK_EQ(rmdir("d"), 0);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
