/* A gigabyte at once, and a further half: reserved, touched here and there, given back, again. */
#include "check.h"

#include <sys/mman.h>

#define GIB (1u << 30)

int main(void)
{
	for (int turn = 0; turn < 3; turn++) {
		volatile char *a =
		    mmap(NULL, GIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		volatile char *b =
		    mmap(NULL, GIB / 2, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

		NEED(a != MAP_FAILED && b != MAP_FAILED);
		CHECK_EQ(a[0] + a[GIB / 2] + a[GIB - 1] + b[GIB / 2 - 1], 0);
		a[0] = 1, a[GIB - 1] = 2, b[GIB / 2 - 1] = 3;
		CHECK_EQ(a[0] + a[GIB - 1] + b[GIB / 2 - 1], 6);
		CHECK_EQ(munmap((void *)a, GIB), 0);
		CHECK_EQ(munmap((void *)b, GIB / 2), 0);
	}
	return check_done();
}
