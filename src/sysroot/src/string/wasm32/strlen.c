#include <string.h>
#include "vector.h"

size_t strlen(const char *s)
{
	const v16 *p = (const v16 *)((uintptr_t)s & -16);
	unsigned zeros = equal_mask(*p, splat(0)) >> ((uintptr_t)s & 15);
	if (zeros) return __builtin_ctz(zeros);
	do zeros = equal_mask(*++p, splat(0));
	while (!zeros);
	return (const char *)p - s + __builtin_ctz(zeros);
}
