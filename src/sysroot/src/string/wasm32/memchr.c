#include <string.h>
#include "vector.h"

void *memchr(const void *src, int c, size_t n)
{
	const unsigned char *s = src, *end;
	if (!n) return 0;
	/* A length that means "until found" reaches beyond the address space. */
	if (n > UINTPTR_MAX - (uintptr_t)src) end = (const unsigned char *)UINTPTR_MAX;
	else end = s + n;

	const v16 *p = (const v16 *)((uintptr_t)s & -16);
	v16 wanted = splat(c);
	unsigned found = equal_mask(*p, wanted) >> ((uintptr_t)s & 15);
	if (found) {
		s += __builtin_ctz(found);
		return (uintptr_t)s < end ? (void *)s : 0;
	}
	while ((uintptr_t)++p < end) {
		found = equal_mask(*p, wanted);
		if (found) {
			s = (const unsigned char *)p + __builtin_ctz(found);
			return (uintptr_t)s < end ? (void *)s : 0;
		}
	}
	return 0;
}
