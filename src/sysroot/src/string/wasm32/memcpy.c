/* Short copies by overlapping loads, middle ones in vectors, long ones by the engine. No parameter is
 * restrict: memmove relies on the order of loads and stores of up to 16 bytes. */
#include <string.h>
#include "vector.h"

void *memcpy(void *dest, const void *src, size_t n)
{
	unsigned char *d = dest;
	const unsigned char *s = src;

	if (n >= BULK) {
		__asm__ volatile (
			"local.get %0\nlocal.get %1\nlocal.get %2\nmemory.copy 0, 0"
			: : "r"(d), "r"(s), "r"(n) : "memory");
		return dest;
	}
	if (n >= 16) {
		v16 tail = *(const v16u *)(s + n - 16);
		unsigned char *end = d + n - 16;
		for (; d < end; d += 16, s += 16) *(v16u *)d = *(const v16u *)s;
		*(v16u *)end = tail;
	} else if (n >= 8) {
		uint64_t a = *(const u64u *)s, b = *(const u64u *)(s + n - 8);
		*(u64u *)d = a;
		*(u64u *)(d + n - 8) = b;
	} else if (n >= 4) {
		uint32_t a = *(const u32u *)s, b = *(const u32u *)(s + n - 4);
		*(u32u *)d = a;
		*(u32u *)(d + n - 4) = b;
	} else if (n >= 2) {
		uint16_t a = *(const u16u *)s, b = *(const u16u *)(s + n - 2);
		*(u16u *)d = a;
		*(u16u *)(d + n - 2) = b;
	} else if (n) {
		*d = *s;
	}
	return dest;
}
