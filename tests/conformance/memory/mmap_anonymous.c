/* Anonymous mappings: zeros, alignment, hints, MAP_FIXED over others, partial munmap. */
#include "check.h"

#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#define PAGE 4096
#define ANON (MAP_PRIVATE | MAP_ANONYMOUS)
#define RW   (PROT_READ | PROT_WRITE)

/* Whether the page is mapped: mincore says ENOMEM where nothing is. */
static int mapped(void *page)
{
	unsigned char there;

	return mincore(page, PAGE, &there) == 0;
}

int main(void)
{
	volatile unsigned char *p = mmap(NULL, 10 * PAGE, RW, ANON, -1, 0), *q, *r;
	unsigned char *hint;

	NEED(p != MAP_FAILED);
	CHECK_EQ((uintptr_t)p % PAGE, 0);
	for (int i = 0; i < 10 * PAGE; i++)
		NEED(p[i] == 0);
	for (int i = 0; i < 10; i++)
		p[i * PAGE] = (unsigned char)(i + 1);

	/* A hole in the middle. */
	CHECK_EQ(munmap((void *)(p + 3 * PAGE), 2 * PAGE), 0);
	CHECK(mapped((void *)(p + 2 * PAGE)) && !mapped((void *)(p + 3 * PAGE)));
	CHECK(!mapped((void *)(p + 4 * PAGE)) && mapped((void *)(p + 5 * PAGE)));
	CHECK_EQ(p[2 * PAGE], 3);
	CHECK_EQ(p[5 * PAGE], 6);
	/* Again, though nothing is there any more. */
	CHECK_EQ(munmap((void *)(p + 3 * PAGE), 2 * PAGE), 0);

	/* MAP_FIXED fills the hole and replaces a neighbour. */
	q = mmap((void *)(p + 3 * PAGE), 3 * PAGE, RW, ANON | MAP_FIXED, -1, 0);
	CHECK(q == p + 3 * PAGE);
	CHECK_EQ(q[0] + q[PAGE] + q[2 * PAGE], 0);
	CHECK_EQ(p[6 * PAGE], 7);
#ifdef MAP_FIXED_NOREPLACE
	CHECK_ERRNO(mmap((void *)p, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0), EEXIST);
	CHECK_EQ(munmap((void *)p, PAGE), 0);
	CHECK(mmap((void *)p, PAGE, RW, ANON | MAP_FIXED_NOREPLACE, -1, 0) == p);
	CHECK_EQ(p[0], 0);
#endif
	/* A hint where something is does not replace it. */
	r = mmap((void *)(p + PAGE), PAGE, RW, ANON, -1, 0);
	NEED(r != MAP_FAILED);
	CHECK(r != p + PAGE);
	CHECK_EQ(p[PAGE], 2);
	CHECK_EQ(munmap((void *)r, PAGE), 0);
	/* One where nothing is is taken. */
	hint = mmap(NULL, 4 * PAGE, RW, ANON, -1, 0);
	NEED(hint != MAP_FAILED && munmap(hint, 4 * PAGE) == 0);
	CHECK(mmap(hint, 2 * PAGE, RW, ANON, -1, 0) == hint);
	CHECK_EQ(munmap(hint, 2 * PAGE), 0);

	CHECK_ERRNO(mmap(NULL, 0, RW, ANON, -1, 0), EINVAL);
	CHECK_ERRNO(mmap((void *)(p + 1), PAGE, RW, ANON | MAP_FIXED, -1, 0), EINVAL);
	CHECK_ERRNO(mmap(NULL, PAGE, RW, MAP_ANONYMOUS, -1, 0), EINVAL);
	CHECK_ERRNO(mmap(NULL, PAGE, RW, MAP_PRIVATE, -1, 0), EBADF);
	CHECK_ERRNO(munmap((void *)(p + 1), PAGE), EINVAL);
	CHECK_ERRNO(munmap((void *)p, 0), EINVAL);
	CHECK_ERRNO(mmap(NULL, SIZE_MAX - PAGE, RW, ANON, -1, 0), ENOMEM);

	/* A length is rounded up to pages. */
	r = mmap(NULL, 1, RW, ANON, -1, 0);
	NEED(r != MAP_FAILED);
	r[PAGE - 1] = 1;
	CHECK_EQ(munmap((void *)r, 1), 0);
	CHECK(!mapped((void *)r));
	CHECK_EQ(munmap((void *)p, 10 * PAGE), 0);
	return check_done();
}
