/* Compares only where the first letter equals the needle's. */
#define _GNU_SOURCE
#include <ctype.h>
#include <string.h>
#include <strings.h>

char *strcasestr(const char *h, const char *n)
{
	size_t l = strlen(n);
	int first = tolower((unsigned char)*n);
	if (!l) return (char *)h;
	for (; *h; h++)
		if (tolower((unsigned char)*h) == first && !strncasecmp(h, n, l)) return (char *)h;
	return 0;
}
