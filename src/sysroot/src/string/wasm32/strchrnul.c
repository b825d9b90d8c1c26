#define _GNU_SOURCE
#include <string.h>
#include "vector.h"

char *__strchrnul(const char *s, int c)
{
	return (char *)find_byte(s, splat(c), 1, 0);
}

weak_alias(__strchrnul, strchrnul);
