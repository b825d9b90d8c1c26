/* memcpy loads before it stores up to BULK bytes; longer moves that overlap are the engine's. */
#include <string.h>
#include "vector.h"

void *memmove(void *dest, const void *src, size_t n)
{
	if (n <= BULK || (uintptr_t)dest - (uintptr_t)src >= n && (uintptr_t)src - (uintptr_t)dest >= n)
		return memcpy(dest, src, n);
	__asm__ volatile (
		"local.get %0\nlocal.get %1\nlocal.get %2\nmemory.copy 0, 0"
		: : "r"(dest), "r"(src), "r"(n) : "memory");
	return dest;
}
