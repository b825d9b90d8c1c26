/* Shared anonymous memory and /dev/zero, split, moved and partly given back. */
#include "check.h"

#include <sys/mman.h>

#define PAGE 4096

int main(void)
{
	volatile char *p = mmap(NULL, 8 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0), *q;

	NEED(p != MAP_FAILED);
	for (int i = 0; i < 8; i++)
		p[i * PAGE] = (char)('a' + i);
	CHECK_EQ(mprotect((void *)(p + 2 * PAGE), PAGE, PROT_READ), 0);
	CHECK_EQ(p[2 * PAGE], 'c');
	CHECK_EQ(munmap((void *)(p + 4 * PAGE), PAGE), 0);
	CHECK_EQ(p[3 * PAGE] + p[5 * PAGE], 'd' + 'f');
	q = mremap((void *)(p + 5 * PAGE), 3 * PAGE, 6 * PAGE, MREMAP_MAYMOVE);
	NEED(q != MAP_FAILED);
	CHECK_EQ(q[0], 'f');
	CHECK_EQ(q[2 * PAGE], 'h');
	CHECK_EQ(munmap((void *)q, 6 * PAGE), 0);
	CHECK_EQ(munmap((void *)p, 4 * PAGE), 0);
	return check_done();
}
