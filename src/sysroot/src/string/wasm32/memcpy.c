/* Short copies by loads and stores from both ends, which may overlap; long ones by the engine. No
 * parameter is restrict: memmove relies on short copies to load everything before they store. */
#include <string.h>
#include "copy.h"

void *memcpy(void *dest, const void *src, size_t n)
{
	unsigned char *d = dest;
	const unsigned char *s = src;

	if (n > BULK) {
		__asm__ volatile (
			"local.get %0\nlocal.get %1\nlocal.get %2\nmemory.copy 0, 0"
			: : "r"(d), "r"(s), "r"(n) : "memory");
		return dest;
	}
	const v16u *from = (const v16u *)s, *from_end = (const v16u *)(s + n);
	v16u *to = (v16u *)d, *to_end = (v16u *)(d + n);
	if (n > 64) {
		v16 a = from[0], b = from[1], c = from[2], e = from[3];
		v16 w = from_end[-4], x = from_end[-3], y = from_end[-2], z = from_end[-1];
		to[0] = a, to[1] = b, to[2] = c, to[3] = e;
		to_end[-4] = w, to_end[-3] = x, to_end[-2] = y, to_end[-1] = z;
	} else if (n > 32) {
		v16 a = from[0], b = from[1], y = from_end[-2], z = from_end[-1];
		to[0] = a, to[1] = b;
		to_end[-2] = y, to_end[-1] = z;
	} else if (n >= 16) {
		v16 a = from[0], z = from_end[-1];
		to[0] = a;
		to_end[-1] = z;
	} else {
		copy_under_16(d, s, n);
	}
	return dest;
}
