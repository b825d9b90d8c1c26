/* Short copies, all of whose loads come before their stores. */
#include <string.h>
#include "vector.h"

/* n < 16. */
static inline void copy_under_16(unsigned char *d, const unsigned char *s, size_t n)
{
	if (n >= 8) {
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
}

/* Copies a string, and returns the address of its end. */
static inline char *copy_string(char *d, const char *s)
{
	if (in_page(s)) {
		unsigned end = equal_mask(*(const v16u *)s, splat(0));
		if (end) {
			size_t n = __builtin_ctz(end);
			if (n == 15) *(v16u *)d = *(const v16u *)s;
			else copy_under_16((void *)d, (const void *)s, n + 1);
			return d + n;
		}
	}
	size_t n = strlen(s);
	memcpy(d, s, n + 1);
	return d + n;
}
