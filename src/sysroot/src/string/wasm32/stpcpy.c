#define _GNU_SOURCE
#include <string.h>
#include "copy.h"

char *__stpcpy(char *restrict d, const char *restrict s)
{
	return copy_string(d, s);
}

weak_alias(__stpcpy, stpcpy);
