#include <string.h>
#include "vector.h"

void *memchr(const void *s, int c, size_t n)
{
	if (!n) return 0;
	/* A length that means "until found" reaches beyond the address space. */
	uintptr_t end = n > UINTPTR_MAX - (uintptr_t)s ? UINTPTR_MAX : (uintptr_t)s + n;
	const unsigned char *found = find_byte(s, splat(c), 0, end);
	return (uintptr_t)found < end ? (void *)found : 0;
}
