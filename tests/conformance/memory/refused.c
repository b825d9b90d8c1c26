/* Mappings that cannot be: what fits nowhere, kinds and flags that there are not, advice that only
 * newer kernels take. */
#include "check.h"

#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE      4096L
#define ANONYMOUS ((long)(MAP_PRIVATE | MAP_ANONYMOUS))
#define VALIDATED 3L
#define DROPPABLE 8L
#define UNKNOWN   0x200000L
#define SYNC      0x80000L
#define GUARD     102
#define NO_GUARD  103

static long map(long at, long length, long flags, int fd)
{
	return syscall(SYS_mmap, at, length, (long)PROT_READ, flags, (long)fd, 0L);
}

static void check_room(int fd)
{
	/* As large as can be said, and as large as all there is. */
	CHECK_ERRNO(mmap(NULL, (size_t)-1, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
	CHECK_ERRNO(mmap(NULL, (size_t)-1 & ~(PAGE - 1), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), ENOMEM);
	CHECK_ERRNO(mmap(NULL, (size_t)-1 / 4096 * 4096, PROT_READ, MAP_SHARED, fd, 0), ENOMEM);
	CHECK_ERRNO(map(-PAGE, PAGE, ANONYMOUS | MAP_FIXED, -1), ENOMEM);
	CHECK_ERRNO(mmap(NULL, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), EINVAL);
	/* The end of the file that it would be of is beyond what an offset says. */
	CHECK_ERRNO(mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, (off_t)1 << 63), EOVERFLOW);
}

static void check_kinds(int fd)
{
	CHECK_ERRNO(map(0, PAGE, MAP_ANONYMOUS, -1), EINVAL);
	CHECK_ERRNO(map(0, PAGE, 0, fd), EINVAL);
	CHECK_ERRNO(map(0, PAGE, 4 | MAP_ANONYMOUS, -1), EINVAL);
	CHECK_ERRNO(map(0, PAGE, DROPPABLE | MAP_PRIVATE | MAP_ANONYMOUS, -1), EINVAL);
	CHECK_ERRNO(map(0, PAGE, 0, -1), EBADF);
	CHECK_ERRNO(map(0, PAGE, MAP_PRIVATE, 999), EBADF);
	/* Whether a file knows a flag is asked of files alone. */
	CHECK_ERRNO(map(0, PAGE, VALIDATED | MAP_ANONYMOUS, -1), EINVAL);
	CHECK_ERRNO(map(0, PAGE, VALIDATED | UNKNOWN, fd), EOPNOTSUPP);
	CHECK_ERRNO(map(0, PAGE, VALIDATED | SYNC, fd), EOPNOTSUPP);
	CHECK(map(0, PAGE, VALIDATED, fd) != -1);
	CHECK(map(0, PAGE, MAP_PRIVATE | UNKNOWN, fd) != -1);
	/* A kernel before 6.11 has no such kind; one that has it gives memory that reads as zero. */
	errno = 0;
	if (map(0, PAGE, DROPPABLE | MAP_ANONYMOUS, -1) == -1)
		CHECK_EQ(errno, EINVAL);
}

static void check_advice(void)
{
	unsigned char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int known;

	NEED(p != MAP_FAILED);
	memset(p, 7, 4 * PAGE);
	/* Kernels before 6.13 do not know it, and then the pages are as they were. */
	known = madvise(p, PAGE, GUARD) == 0;
	if (!known) {
		CHECK_EQ(errno, EINVAL);
		CHECK_EQ(p[0], 7);
		CHECK_ERRNO(madvise(p, PAGE, NO_GUARD), EINVAL);
	} else {
		CHECK_EQ(madvise(p, PAGE, NO_GUARD), 0);
		CHECK_EQ(p[0], 0);
	}
	CHECK_EQ(p[PAGE], 7);
	CHECK_ERRNO(madvise(p, PAGE, -1), EINVAL);
	CHECK_ERRNO(madvise(p, PAGE, 200), EINVAL);
	/* A length that leads around the end of all addresses. */
	CHECK_ERRNO(madvise(p, (size_t)-PAGE, MADV_NORMAL), EINVAL);
	CHECK_ERRNO(madvise((void *)-PAGE, 2 * PAGE, MADV_NORMAL), EINVAL);
	CHECK_ERRNO(msync(p, (size_t)-PAGE, MS_SYNC), ENOMEM);
	CHECK_ERRNO(mprotect(p, (size_t)-PAGE, PROT_READ), ENOMEM);
	CHECK_ERRNO(munmap(p, (size_t)-PAGE), EINVAL);
	CHECK_ERRNO(munmap(p, 0), EINVAL);
	CHECK_EQ(munmap(p, 4 * PAGE), 0);
}

int main(void)
{
	int fd = check_file("f", "");

	NEED(ftruncate(fd, 2 * PAGE) == 0);
	check_room(fd);
	check_kinds(fd);
	check_advice();
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
