/* mremap(MREMAP_DONTUNMAP): the contents move, and their old place stays mapped. */
#include "../check.h"
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE      4096L
#define MAYMOVE   1L
#define FIXED     2L
#define DONTUNMAP 4L

static unsigned char *remap(void *old, long size, long new_size, long flags, void *to)
{
	return (unsigned char *)syscall(SYS_mremap, old, size, new_size, flags, to);
}

int main(void)
{
	unsigned char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q;
	int fd = check_file("f", "text of the file");

	NEED(p != MAP_FAILED);
	memset(p, 7, 4 * PAGE);
	CHECK_ERRNO((void *)remap(p, PAGE, PAGE, DONTUNMAP, NULL), EINVAL);
	CHECK_ERRNO((void *)remap(p, PAGE, 2 * PAGE, MAYMOVE | DONTUNMAP, NULL), EINVAL);
	CHECK_ERRNO((void *)remap(p, PAGE, PAGE, MAYMOVE | 8, NULL), EINVAL);
	q = remap(p + PAGE, 2 * PAGE, 2 * PAGE, MAYMOVE | DONTUNMAP, NULL);
	NEED(q != MAP_FAILED);
	CHECK(q + 2 * PAGE <= p || q >= p + 4 * PAGE);
	CHECK(p[0] == 7 && p[PAGE] == 0 && p[3 * PAGE - 1] == 0 && p[3 * PAGE] == 7);
	CHECK(q[0] == 7 && q[2 * PAGE - 1] == 7);
	p[PAGE] = 9;
	CHECK_EQ(q[0], 7);
	CHECK_EQ(munmap(q, 2 * PAGE), 0);
	/* To where something is. */
	CHECK(remap(p, PAGE, PAGE, MAYMOVE | FIXED | DONTUNMAP, p + 3 * PAGE) == p + 3 * PAGE);
	CHECK(p[0] == 0 && p[3 * PAGE] == 7);
	CHECK_EQ(munmap(p, 4 * PAGE), 0);
	/* Shared memory is in both places then. */
	p = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	NEED(p != MAP_FAILED);
	q = remap(p, PAGE, PAGE, MAYMOVE | DONTUNMAP, NULL);
	if (q != MAP_FAILED) {
		q[0] = 'T';
		CHECK_EQ(p[0], 'T');
		CHECK_EQ(munmap(q, PAGE), 0);
	}
	CHECK_EQ(munmap(p, PAGE), 0);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
