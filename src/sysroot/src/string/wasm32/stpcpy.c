#define _GNU_SOURCE
#include <string.h>

char *__stpcpy(char *restrict d, const char *restrict s)
{
	size_t n = strlen(s);
	memcpy(d, s, n + 1);
	return d + n;
}

weak_alias(__stpcpy, stpcpy);
