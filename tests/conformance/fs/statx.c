/* statx(2) with the numbers of linux/stat.h, since not every libc has the wrapper. */
#include "check.h"

#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#define BASIC 0x7ff

/* struct statx as the kernel lays it out, as far as it is looked at; 256 bytes in all. */
struct fields {
	uint32_t mask, blksize;
	uint64_t attributes;
	uint32_t nlink, uid, gid;
	uint16_t mode, pad;
	uint64_t ino, size, blocks, attributes_mask;
	struct {
		int64_t sec;
		uint32_t nsec;
		int32_t pad;
	} atime, btime, ctime, mtime;
	uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
	unsigned char rest[256 - 144];
	unsigned char after[16];
};

static long ask(int dir, const char *name, long flags, long mask, struct fields *to)
{
	return syscall(SYS_statx, (long)dir, name, flags, mask, to);
}

int main(void)
{
	struct fields x;
	struct stat st;
	int fd = check_file("f", "0123456789");

	memset(&x, 0xee, sizeof x);
	NEED(ask(AT_FDCWD, "f", 0, BASIC, &x) == 0);
	NEED(stat("f", &st) == 0);
	CHECK_EQ(x.mask & BASIC, BASIC);
	CHECK_EQ(x.ino, st.st_ino);
	CHECK_EQ(x.size, 10);
	CHECK_EQ(x.nlink, 1);
	CHECK_EQ(x.mode, st.st_mode);
	CHECK_EQ(x.uid, st.st_uid);
	CHECK_EQ(x.mtime.sec, st.st_mtim.tv_sec);
	CHECK_EQ(x.mtime.nsec, st.st_mtim.tv_nsec);
	/* Nothing is written past the struct. */
	for (size_t i = 0; i < sizeof x.after; i++)
		CHECK_EQ(x.after[i], 0xee);
	NEED(symlink("f", "link") == 0);
	CHECK_EQ(ask(AT_FDCWD, "link", 0x100, BASIC, &x), 0);
	CHECK(S_ISLNK(x.mode));
	CHECK_EQ(ask(fd, "", 0x1000, BASIC, &x), 0);
	CHECK_EQ(x.size, 10);
	CHECK_ERRNO(ask(AT_FDCWD, "missing", 0, BASIC, &x), ENOENT);
	CHECK_ERRNO(ask(AT_FDCWD, "f", 1 << 30, BASIC, &x), EINVAL);
	CHECK_ERRNO(ask(AT_FDCWD, "f", 0, 0x80000000, &x), EINVAL);
	CHECK_ERRNO(ask(99, "f", 0, BASIC, &x), EBADF);
	close(fd);
	CHECK_EQ(unlink("link"), 0);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
