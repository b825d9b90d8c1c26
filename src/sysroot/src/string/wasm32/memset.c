/* As in memcpy: overlapping stores for small sizes, then vectors, and for large sizes the
 * engine's own instruction, which fills faster than it copies. */
#include <string.h>
#include "vector.h"

void *memset(void *dest, int c, size_t n)
{
	unsigned char *d = dest;

	if (n >= BULK/2) {
		__asm__ volatile (
			"local.get %0\nlocal.get %1\nlocal.get %2\nmemory.fill 0"
			: : "r"(d), "r"(c), "r"(n) : "memory");
		return dest;
	}
	if (n >= 16) {
		v16 v = splat(c);
		unsigned char *end = d + n - 16;
		for (; d < end; d += 16) *(v16u *)d = v;
		*(v16u *)end = v;
	} else if (n >= 8) {
		uint64_t v = 0x0101010101010101 * (unsigned char)c;
		*(u64u *)d = v;
		*(u64u *)(d + n - 8) = v;
	} else if (n >= 4) {
		uint32_t v = 0x01010101 * (unsigned char)c;
		*(u32u *)d = v;
		*(u32u *)(d + n - 4) = v;
	} else if (n >= 2) {
		d[0] = d[1] = d[n - 1] = c;
	} else if (n) {
		*d = c;
	}
	return dest;
}
