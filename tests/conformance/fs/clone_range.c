/* FICLONE, FICLONERANGE and FIDEDUPERANGE: what is refused, in which order; a file system may or
 * may not share blocks. */
#include "../check.h"
#include <sys/ioctl.h>
#include <sys/stat.h>

struct range {
	int64_t source;
	uint64_t from, length, to;
};
struct same {
	uint64_t from, length;
	uint16_t count, reserved;
	uint32_t reserved_too;
	char each[32];
};
#define CLONE       _IOW(0x94, 9, int)
#define CLONE_RANGE _IOW(0x94, 13, struct range)
#define SAME        _IOWR(0x94, 54, char[24])

/* Given, or refused as where the file system cannot. */
static void given(int r)
{
	CHECK(r == 0 || errno == EOPNOTSUPP);
}

int main(void)
{
	int from = check_file("from", "text"), to = open("to", O_RDWR | O_CREAT, 0600), ends[2];
	int only_reads = open("to", O_RDONLY), appends = open("to", O_WRONLY | O_APPEND),
	    only_writes = open("from", O_WRONLY);
	int folder = open(".", O_RDONLY | O_DIRECTORY), path = open("from", O_PATH);
	struct range range = { from, 0, 0, 0 };
	struct same same = { .length = 0, .count = 1 };

	NEED(to >= 0 && only_reads >= 0 && appends >= 0 && only_writes >= 0 && folder >= 0 && path >= 0 &&
	    pipe(ends) == 0);
	CHECK_ERRNO(ioctl(to, CLONE, 999), EBADF);
	CHECK_ERRNO(ioctl(999, CLONE, from), EBADF);
	CHECK_ERRNO(ioctl(to, CLONE, path), EBADF);
	CHECK_ERRNO(ioctl(path, CLONE, from), EBADF);
	CHECK_ERRNO(ioctl(to, CLONE, folder), EISDIR);
	CHECK_ERRNO(ioctl(folder, CLONE, from), EISDIR);
	CHECK_ERRNO(ioctl(to, CLONE, ends[0]), EXDEV);
	CHECK_ERRNO(ioctl(ends[1], CLONE, from), EXDEV);
	CHECK_ERRNO(ioctl(only_reads, CLONE, from), EBADF);
	CHECK_ERRNO(ioctl(appends, CLONE, from), EBADF);
	CHECK_ERRNO(ioctl(to, CLONE, only_writes), EBADF);
	given(ioctl(to, CLONE, from));
	CHECK_ERRNO(ioctl(to, CLONE_RANGE, NULL), EFAULT);
	given(ioctl(to, CLONE_RANGE, &range));
	range.source = 999;
	CHECK_ERRNO(ioctl(to, CLONE_RANGE, &range), EBADF);
	CHECK_ERRNO(ioctl(only_writes, SAME, &same), EINVAL);
	CHECK_ERRNO(ioctl(folder, SAME, &same), EISDIR);
	CHECK_ERRNO(ioctl(ends[0], SAME, &same), EINVAL);
	same.count = 1000;
	CHECK_ERRNO(ioctl(from, SAME, &same), ENOMEM);
	close(from), close(to), close(only_reads), close(appends), close(only_writes), close(folder), close(path);
	CHECK_EQ(unlink("from") | unlink("to"), 0);
	return check_done();
}
