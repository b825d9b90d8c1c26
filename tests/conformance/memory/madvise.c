/* madvise, mincore, msync, mlock: what they do and what they refuse. */
#include "check.h"

#include <stdint.h>
#include <sys/mman.h>

#define PAGE 4096

int main(void)
{
	unsigned char there[4], *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile unsigned char *v = p;

	NEED(p != MAP_FAILED);
	v[0] = 1, v[PAGE] = 2, v[2 * PAGE] = 3;
	CHECK_EQ(madvise(p + PAGE, PAGE, MADV_DONTNEED), 0);
	CHECK_EQ(v[0], 1);
	CHECK_EQ(v[PAGE], 0);
	CHECK_EQ(v[2 * PAGE], 3);
	CHECK_EQ(madvise(p, 4 * PAGE, MADV_NORMAL), 0);
	CHECK_EQ(madvise(p, 4 * PAGE, MADV_WILLNEED), 0);
	CHECK_EQ(madvise(p, 4 * PAGE, MADV_SEQUENTIAL), 0);
	CHECK_EQ(madvise(p, 0, MADV_DONTNEED), 0);
	CHECK_ERRNO(madvise(p, PAGE, 9999), EINVAL);
	CHECK_ERRNO(madvise(p + 1, PAGE, MADV_DONTNEED), EINVAL);
	CHECK_EQ(posix_madvise(p, PAGE, POSIX_MADV_NORMAL), 0);

	CHECK_EQ(mincore(p, 4 * PAGE, there), 0);
	CHECK_EQ(there[0] & 1, 1);
	CHECK_ERRNO(mincore(p + 1, PAGE, there), EINVAL);
	CHECK_EQ(msync(p, 4 * PAGE, MS_ASYNC), 0);
	CHECK_ERRNO(msync(p, PAGE, MS_SYNC | MS_ASYNC), EINVAL);
	CHECK_ERRNO(msync(p + 1, PAGE, MS_SYNC), EINVAL);
	CHECK_EQ(munmap(p + 2 * PAGE, PAGE), 0);
	CHECK_ERRNO(mincore(p, 4 * PAGE, there), ENOMEM);
	CHECK_ERRNO(msync(p, 4 * PAGE, MS_SYNC), ENOMEM);
	CHECK_ERRNO(madvise(p, 4 * PAGE, MADV_DONTNEED), ENOMEM);
	/* It did what it could all the same. */
	CHECK_EQ(v[0], 0);
	CHECK_EQ(munmap(p, 4 * PAGE), 0);
	return check_done();
}
