#include <string.h>
#include "vector.h"

size_t strlen(const char *s)
{
	return find_byte(s, splat(0), 0, 0) - (const unsigned char *)s;
}
