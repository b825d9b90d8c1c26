#define _GNU_SOURCE
#include <string.h>
#include "vector.h"

void *__memrchr(const void *m, int c, size_t n)
{
	const unsigned char *s = m, *e = s + n;
	v16 wanted = splat(c);
	for (; e - s >= 16; e -= 16) {
		unsigned found = equal_mask(*(const v16u *)(e - 16), wanted);
		if (found) return (void *)(e - 16 + 31 - __builtin_clz(found));
	}
	while (e > s)
		if (*--e == (unsigned char)c) return (void *)e;
	return 0;
}

weak_alias(__memrchr, memrchr);
