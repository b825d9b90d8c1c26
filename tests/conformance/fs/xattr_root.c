/* Attributes that are not for users: setting, reading and listing of trusted.* and security.*. */
#include "check.h"

#include <sys/wait.h>
#include <sys/xattr.h>

/* As nobody, who has the file all the same. */
static void check_user(int fd)
{
	char value[8], list[256];
	ssize_t n;

	CHECK_EQ(setgid(65534) | setuid(65534), 0);
	CHECK_ERRNO(fgetxattr(fd, "trusted.one", value, sizeof value), ENODATA);
	CHECK_ERRNO(fsetxattr(fd, "trusted.one", "x", 1, 0), EPERM);
	CHECK_ERRNO(fremovexattr(fd, "trusted.one"), EPERM);
	CHECK_EQ(fgetxattr(fd, "security.one", value, sizeof value), 2);
	CHECK_ERRNO(fsetxattr(fd, "security.one", "x", 1, 0), EPERM);
	CHECK_ERRNO(fremovexattr(fd, "security.one"), EPERM);
	n = flistxattr(fd, list, sizeof list);
	CHECK(n > 0 && memmem(list, (size_t)n, "security.one", 13));
	CHECK(n > 0 && !memmem(list, (size_t)n, "trusted", 7));
	_exit(check_done());
}

static void check_root(int fd)
{
	char value[8], list[256];
	pid_t child;
	ssize_t n;
	int status;

	CHECK_EQ(fgetxattr(fd, "trusted.one", value, sizeof value), 1);
	CHECK_EQ(value[0], '1');
	CHECK_EQ(fsetxattr(fd, "security.one", "22", 2, 0), 0);
	CHECK_ERRNO(fsetxattr(fd, "trusted.", "x", 1, 0), EINVAL);
	CHECK_ERRNO(fsetxattr(fd, "security.", "x", 1, 0), EINVAL);
	n = flistxattr(fd, list, sizeof list);
	CHECK(n > 0 && memmem(list, (size_t)n, "trusted.one", 12) && memmem(list, (size_t)n, "security.one", 13));
	/* Not only files and directories have them. */
	CHECK_EQ(lsetxattr("l", "trusted.two", "2", 1, 0), 0);
	CHECK_EQ(lgetxattr("l", "trusted.two", value, sizeof value), 1);
	CHECK_EQ(lremovexattr("l", "trusted.two"), 0);
	if (!(child = fork()))
		check_user(fd);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(fremovexattr(fd, "trusted.one"), 0);
	CHECK_EQ(fremovexattr(fd, "security.one"), 0);
	CHECK_ERRNO(fgetxattr(fd, "trusted.one", value, sizeof value), ENODATA);
	CHECK_ERRNO(fgetxattr(fd, "security.one", value, sizeof value), ENODATA);
}

int main(void)
{
	int fd = check_file("f", "x"), there, refused;

	NEED(symlink("f", "l") == 0);
	there = fsetxattr(fd, "trusted.one", "1", 1, 0) == 0;
	refused = errno;
	if (there && geteuid() == 0)
		check_root(fd);
	else
		CHECK(refused == EPERM || refused == EOPNOTSUPP);
	close(fd);
	CHECK_EQ(unlink("f") | unlink("l"), 0);
	if (!there)
		check_skip("nobody may set these here: the caller is a user, or the files are the host's");
	return check_done();
}
