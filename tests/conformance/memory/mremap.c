/* mremap: shrinking, growing in place, moving, and to a chosen place. */
#include "check.h"

#include <stdint.h>
#include <sys/mman.h>

#define PAGE 4096
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define RW   (PROT_READ | PROT_WRITE)

static int mapped(void *page)
{
	unsigned char there;

	return mincore(page, PAGE, &there) == 0;
}

int main(void)
{
	char *area = mmap(NULL, 16 * PAGE, RW, ANON, -1, 0), *p, *q;

	NEED(area != MAP_FAILED);
	for (int i = 0; i < 16; i++)
		area[i * PAGE] = (char)('a' + i);

	p = mremap(area, 16 * PAGE, 4 * PAGE, 0);
	CHECK(p == area);
	CHECK(mapped(area + 3 * PAGE) && !mapped(area + 4 * PAGE));
	/* There is room behind it again. */
	p = mremap(area, 4 * PAGE, 8 * PAGE, 0);
	CHECK(p == area);
	CHECK_EQ(area[3 * PAGE], 'd');
	CHECK_EQ(area[4 * PAGE], 0);

	/* No room: it moves if it may. */
	NEED(mmap(area + 8 * PAGE, PAGE, PROT_READ, ANON | MAP_FIXED, -1, 0) == area + 8 * PAGE);
	CHECK_ERRNO(mremap(area, 8 * PAGE, 12 * PAGE, 0), ENOMEM);
	p = mremap(area, 8 * PAGE, 12 * PAGE, MREMAP_MAYMOVE);
	NEED(p != MAP_FAILED);
	CHECK(p != area && !mapped(area));
	CHECK_EQ(p[3 * PAGE], 'd');
	CHECK_EQ(p[11 * PAGE], 0);
	p[11 * PAGE] = 'l';

	q = mmap(NULL, 12 * PAGE, RW, ANON, -1, 0);
	NEED(q != MAP_FAILED);
	q[0] = 'q';
	CHECK(mremap(p, 12 * PAGE, 12 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q) == q);
	CHECK(!mapped(p));
	CHECK_EQ(q[0], 'a');
	CHECK_EQ(q[11 * PAGE], 'l');

	CHECK_ERRNO(mremap(p, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EFAULT);
	CHECK_ERRNO(mremap(q + 1, PAGE, 2 * PAGE, MREMAP_MAYMOVE), EINVAL);
	CHECK_ERRNO(mremap(q, PAGE, 0, MREMAP_MAYMOVE), EINVAL);
	CHECK_ERRNO(mremap(q, 12 * PAGE, PAGE, MREMAP_FIXED, p), EINVAL);
	CHECK_ERRNO(mremap(q, 4 * PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, q + PAGE), EINVAL);
	CHECK_EQ(munmap(q, 12 * PAGE), 0);
	CHECK_EQ(munmap(area + 8 * PAGE, PAGE), 0);
	return check_done();
}
