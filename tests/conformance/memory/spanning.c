/* One call over several mappings: neighbours with different backing, and a hole that ends it. */
#include "check.h"

#include <sys/mman.h>
#include <sys/uio.h>

#define PAGE 4096
#define RW   (PROT_READ | PROT_WRITE)

int main(void)
{
	char *area = mmap(NULL, 8 * PAGE, RW, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), block[3 * PAGE];
	struct iovec pieces[3];
	int fd = check_file("f", ""), backing = check_file("g", "");

	NEED(area != MAP_FAILED && ftruncate(backing, 8 * PAGE) == 0);
	NEED(mmap(area + PAGE, PAGE, RW, MAP_SHARED | MAP_FIXED, backing, 0) == area + PAGE);
	NEED(mmap(area + 2 * PAGE, PAGE, RW, MAP_PRIVATE | MAP_FIXED, backing, PAGE) == area + 2 * PAGE);
	NEED(munmap(area + 4 * PAGE, PAGE) == 0 && mprotect(area + 6 * PAGE, PAGE, PROT_READ) == 0);
	memset(block, 's', sizeof block);
	CHECK_EQ(pwrite(fd, block, sizeof block, 0), sizeof block);
	CHECK_EQ(pread(fd, area, 3 * PAGE, 0), 3 * PAGE);
	CHECK_EQ(memcmp(area, block, 3 * PAGE), 0);
	CHECK_EQ(pread(backing, block, PAGE, 0), PAGE);
	CHECK_EQ(block[PAGE - 1], 's');
	CHECK_EQ(pread(backing, block, PAGE, PAGE), PAGE);
	CHECK_EQ(block[0], 0);
	/* Up to the hole, and not beyond. */
	CHECK_EQ(pread(fd, area + 3 * PAGE, 2 * PAGE, 0), PAGE);
	CHECK_EQ(pwrite(fd, area + 3 * PAGE, 2 * PAGE, 0), PAGE);
	CHECK_ERRNO(pread(fd, area + 4 * PAGE, PAGE, 0), EFAULT);
	/* Readable is enough to write a file from, not to read into. */
	CHECK_EQ(pwrite(fd, area + 5 * PAGE, 2 * PAGE, 0), 2 * PAGE);
	CHECK_EQ(pread(fd, area + 5 * PAGE, 2 * PAGE, 0), PAGE);
	pieces[0] = (struct iovec){ area, 10 };
	pieces[1] = (struct iovec){ area + 4 * PAGE, 10 };
	pieces[2] = (struct iovec){ area + 5 * PAGE, 10 };
	CHECK_EQ(pwritev(fd, pieces, 3, 0), 10);
	pieces[1].iov_len = 0;
	CHECK_EQ(pwritev(fd, pieces, 3, 0), 20);
	CHECK_EQ(unlink("f"), 0);
	CHECK_EQ(unlink("g"), 0);
	return check_done();
}
