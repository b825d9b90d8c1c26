/* statfs, fstatfs, statvfs, and what sync has to say: nothing. */
#include "check.h"

#include <sys/statvfs.h>
#include <sys/vfs.h>

int main(void)
{
	struct statfs by_path, by_fd;
	struct statvfs vfs;
	int fd = check_file("f", "x");

	NEED(statfs(".", &by_path) == 0 && fstatfs(fd, &by_fd) == 0);
	CHECK_EQ(by_path.f_type, by_fd.f_type);
	CHECK_EQ(by_path.f_bsize, by_fd.f_bsize);
	CHECK(by_path.f_bsize > 0);
	CHECK(by_path.f_blocks >= by_path.f_bfree && by_path.f_bfree >= by_path.f_bavail);
	CHECK_EQ(by_path.f_namelen, 255);
	NEED(statvfs("f", &vfs) == 0);
	CHECK_EQ(vfs.f_namemax, 255);
	CHECK_EQ(vfs.f_bsize, by_path.f_bsize);
	CHECK_ERRNO(statfs("missing", &by_path), ENOENT);
	CHECK_ERRNO(fstatfs(-1, &by_fd), EBADF);

	CHECK_EQ(fsync(fd), 0);
	CHECK_EQ(fdatasync(fd), 0);
	CHECK_ERRNO(fsync(-1), EBADF);
	CHECK_EQ(syncfs(fd), 0);
	sync();
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
