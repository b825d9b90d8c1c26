#include <string.h>
#include "copy.h"

char *strcpy(char *restrict d, const char *restrict s)
{
	copy_string(d, s);
	return d;
}
