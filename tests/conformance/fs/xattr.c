/* Extended attributes of files. */
#include "check.h"

#include <sys/xattr.h>

int main(void)
{
	char value[64] = { 0 }, list[256];
	int fd = check_file("f", "x");
	ssize_t n;

	NEED(symlink("f", "l") == 0 && symlink("missing", "dangling") == 0);
	if (setxattr("f", "user.one", "1", 1, 0) && (errno == EOPNOTSUPP || errno == ENOSYS)) {
		unlink("f");
		unlink("l");
		unlink("dangling");
		check_skip("the file system has no extended attributes");
	}
	CHECK_EQ(getxattr("f", "user.one", value, sizeof value), 1);
	CHECK_EQ(value[0], '1');
	CHECK_EQ(getxattr("f", "user.one", NULL, 0), 1);
	CHECK_EQ(setxattr("l", "user.two", "second", 6, XATTR_CREATE), 0);
	CHECK_ERRNO(setxattr("f", "user.two", "x", 1, XATTR_CREATE), EEXIST);
	CHECK_ERRNO(setxattr("f", "user.three", "x", 1, XATTR_REPLACE), ENODATA);
	CHECK_EQ(fgetxattr(fd, "user.two", value, sizeof value), 6);
	CHECK_EQ(memcmp(value, "second", 6), 0);
	CHECK_ERRNO(getxattr("f", "user.two", value, 3), ERANGE);
	CHECK_EQ(fsetxattr(fd, "user.two", "2", 1, XATTR_REPLACE), 0);
	CHECK_EQ(lgetxattr("f", "user.two", value, sizeof value), 1);
	NEED((n = listxattr("f", list, sizeof list)) > 0);
	CHECK(memmem(list, (size_t)n, "user.one", 9) && memmem(list, (size_t)n, "user.two", 9));
	CHECK_EQ(flistxattr(fd, NULL, 0), n);
	CHECK_ERRNO(listxattr("f", list, 1), ERANGE);
	CHECK_EQ(removexattr("f", "user.one"), 0);
	CHECK_ERRNO(removexattr("f", "user.one"), ENODATA);
	CHECK_ERRNO(getxattr("f", "user.one", value, sizeof value), ENODATA);
	CHECK_EQ(fremovexattr(fd, "user.two"), 0);
	CHECK_ERRNO(setxattr("f", "other.x", "x", 1, 0), EOPNOTSUPP);
	CHECK_ERRNO(setxattr("f", "", "x", 1, 0), ERANGE);
	CHECK_ERRNO(setxattr("f", "user.x", "x", 1, 99), EINVAL);
	CHECK_ERRNO(setxattr("f", "user.x", value, 70000, 0), E2BIG);
	CHECK_ERRNO(getxattr("dangling", "user.x", value, 1), ENOENT);
	CHECK_ERRNO(lsetxattr("dangling", "user.x", "x", 1, 0), EPERM);
	CHECK_ERRNO(getxattr("missing", "user.x", value, 1), ENOENT);
	CHECK_ERRNO(fgetxattr(-1, "user.x", value, 1), EBADF);
	close(fd);
	CHECK_EQ(unlink("f") | unlink("l") | unlink("dangling"), 0);
	return check_done();
}
