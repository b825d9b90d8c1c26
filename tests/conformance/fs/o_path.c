/* O_PATH descriptors name a file without opening it. */
#include "check.h"

#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/vfs.h>

int main(void)
{
	struct stat st;
	char text[8] = { 0 };
	int dir, file = -1, link_fd = -1, fd;

	NEED(mkdir("d", 0755) == 0);
	close(check_file("d/f", "0123"));
	NEED(symlink("f", "d/l") == 0);
	NEED((dir = open("d", O_PATH | O_DIRECTORY)) >= 0 && (file = open("d/f", O_PATH)) >= 0);
	NEED((link_fd = open("d/l", O_PATH | O_NOFOLLOW)) >= 0);
	CHECK(fcntl(file, F_GETFL) & O_PATH);
	CHECK_ERRNO(read(file, text, 1), EBADF);
	CHECK_ERRNO(write(file, text, 1), EBADF);
	/* musl would try again by way of /proc, so ask the kernel. */
	CHECK_ERRNO(syscall(SYS_fchmod, (long)file, 0600L), EBADF);
	CHECK_ERRNO(syscall(SYS_fchown, (long)file, -1L, -1L), EBADF);
	CHECK_ERRNO(ftruncate(file, 0), EBADF);
	CHECK_ERRNO(ioctl(file, FIOCLEX), EBADF);
	CHECK_ERRNO(ioctl(file, 0x12345), EBADF);
	CHECK_ERRNO(fcntl(file, F_GETLK, &(struct flock){ .l_type = F_RDLCK }), EBADF);
	CHECK_ERRNO(fcntl(file, F_GETLEASE), EBADF);
	CHECK_ERRNO(fcntl(file, F_SETLEASE, F_RDLCK), EBADF);
	CHECK_ERRNO(fcntl(file, F_NOTIFY, 1), EBADF);
	CHECK_ERRNO(fcntl(file, 9999), EBADF);
	CHECK_ERRNO(mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, file, 0), EBADF);
	CHECK_EQ(fstat(file, &st), 0);
	CHECK_EQ(st.st_size, 4);
	CHECK_EQ(fstat(link_fd, &st), 0);
	CHECK(S_ISLNK(st.st_mode));
	CHECK_EQ(readlinkat(link_fd, "", text, sizeof text), 1);
	CHECK_EQ(text[0], 'f');
	CHECK_EQ(fstatfs(dir, &(struct statfs){ 0 }), 0);

	NEED((fd = openat(dir, "f", O_RDONLY)) >= 0);
	CHECK_EQ(read(fd, text, 4), 4);
	close(fd);
	CHECK_EQ(mkdirat(dir, "sub", 0755), 0);
	CHECK_EQ(renameat(dir, "f", dir, "g"), 0);
	CHECK_EQ(fchdir(dir), 0);
	CHECK_EQ(access("g", F_OK), 0);
	CHECK_EQ(chdir(".."), 0);
	NEED((fd = dup(file)) >= 0);
	CHECK(fcntl(fd, F_GETFL) & O_PATH);
	close(fd);
	CHECK_EQ(unlinkat(dir, "sub", AT_REMOVEDIR), 0);
	CHECK_EQ(unlinkat(dir, "g", 0), 0);
	CHECK_EQ(unlinkat(dir, "l", 0), 0);
	CHECK_EQ(rmdir("d"), 0);
	return check_done();
}
