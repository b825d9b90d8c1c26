#define _GNU_SOURCE
#include <string.h>

char *__stpncpy(char *restrict d, const char *restrict s, size_t n)
{
	size_t l = strnlen(s, n);
	memcpy(d, s, l);
	memset(d + l, 0, n - l);
	return d + l;
}

weak_alias(__stpncpy, stpncpy);
