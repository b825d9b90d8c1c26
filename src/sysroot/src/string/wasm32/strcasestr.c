/* The needle without a letter is in the empty string, which the generic file denies. */
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
