#include <string.h>
#include "vector.h"

size_t strnlen(const char *s, size_t n)
{
	if (!n) return 0;
	uintptr_t end = n > UINTPTR_MAX - (uintptr_t)s ? UINTPTR_MAX : (uintptr_t)s + n;
	const unsigned char *found = find_byte(s, splat(0), 0, end);
	return (uintptr_t)found < end ? (uintptr_t)found - (uintptr_t)s : n;
}
