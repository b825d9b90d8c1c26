#define _GNU_SOURCE
#include <string.h>
#include "vector.h"

char *__strchrnul(const char *s, int c)
{
	const v16 *p = (const v16 *)((uintptr_t)s & -16);
	v16 wanted = splat(c);
	unsigned found = (equal_mask(*p, wanted) | equal_mask(*p, splat(0))) >> ((uintptr_t)s & 15);
	if (found) return (char *)s + __builtin_ctz(found);
	do {
		p++;
		found = equal_mask(*p, wanted) | equal_mask(*p, splat(0));
	} while (!found);
	return (char *)p + __builtin_ctz(found);
}

weak_alias(__strchrnul, strchrnul);
