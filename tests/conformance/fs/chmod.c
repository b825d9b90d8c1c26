/* chmod, fchmod, fchmodat, chown and its family, umask. */
#include "check.h"

#include <sys/stat.h>

static mode_t mode_of(const char *name)
{
	struct stat st;

	NEED(stat(name, &st) == 0);
	return st.st_mode & 07777;
}

static void owners(int fd)
{
	struct stat st;
	uid_t uid = geteuid();

	CHECK_EQ(chown("f", (uid_t)-1, (gid_t)-1), 0);
	CHECK_EQ(fchown(fd, uid, (gid_t)-1), 0);
	CHECK_ERRNO(chown("missing", uid, (gid_t)-1), ENOENT);
	CHECK_ERRNO(fchown(-1, uid, (gid_t)-1), EBADF);
	NEED(symlink("nowhere", "link") == 0);
	CHECK_EQ(lchown("link", uid, (gid_t)-1), 0);
	CHECK_ERRNO(chown("link", uid, (gid_t)-1), ENOENT);
	CHECK_EQ(fchownat(AT_FDCWD, "link", uid, (gid_t)-1, AT_SYMLINK_NOFOLLOW), 0);
	CHECK_EQ(unlink("link"), 0);
	if (uid != 0) {
		CHECK_ERRNO(chown("f", 0, 0), EPERM);
		return;
	}
	CHECK_EQ(chmod("f", 06755), 0);
	if (chown("f", 1234, 2345)) {
		/* Root of a user namespace with one id. */
		CHECK_EQ(errno, EINVAL);
		return;
	}
	NEED(fstat(fd, &st) == 0);
	CHECK_EQ(st.st_uid, 1234);
	CHECK_EQ(st.st_gid, 2345);
	CHECK_EQ(st.st_mode & 06000, 0);
	CHECK_EQ(fchownat(fd, "", 0, 0, AT_EMPTY_PATH), 0);
	NEED(fstat(fd, &st) == 0);
	CHECK_EQ(st.st_uid, 0);
}

int main(void)
{
	int dir = -1, fd = check_file("f", "x");

	CHECK_EQ(chmod("f", 0), 0);
	CHECK_EQ(mode_of("f"), 0);
	CHECK_EQ(fchmod(fd, 0640), 0);
	CHECK_EQ(mode_of("f"), 0640);
	CHECK_EQ(chmod("f", 04711), 0);
	CHECK_EQ(mode_of("f"), 04711);
	CHECK_ERRNO(chmod("missing", 0600), ENOENT);
	CHECK_ERRNO(fchmod(-1, 0600), EBADF);
	NEED(mkdir("d", 0755) == 0 && (dir = open("d", O_RDONLY)) >= 0);
	CHECK_EQ(fchmodat(dir, "../f", 0600, 0), 0);
	CHECK_EQ(mode_of("f"), 0600);
	CHECK_ERRNO(fchmodat(-1, "f", 0600, 0), EBADF);
	CHECK_EQ(chmod("d", 01777), 0);
	CHECK_EQ(mode_of("d"), 01777);
	NEED(symlink("f", "s") == 0);
	CHECK_EQ(chmod("s", 0604), 0);
	CHECK_EQ(mode_of("f"), 0604);
	CHECK_EQ(unlink("s"), 0);

	umask(0);
	CHECK_EQ(umask(0777), 0);
	CHECK_EQ(umask(07123), 0777);
	/* Only permission bits are kept. */
	CHECK_EQ(umask(022), 0123);
	owners(fd);
	close(dir);
	close(fd);
	CHECK_EQ(rmdir("d"), 0);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
