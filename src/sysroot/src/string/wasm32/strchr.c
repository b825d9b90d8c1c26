#include <string.h>
#include "vector.h"

char *strchr(const char *s, int c)
{
	const unsigned char *found = find_byte(s, splat(c), 1, 0);
	return *found == (unsigned char)c ? (char *)found : 0;
}
