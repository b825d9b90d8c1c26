#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

char *canonicalize_file_name(const char *path)
{
	return realpath(path, 0);
}

void *rawmemchr(const void *from, int c)
{
	return c ? memchr(from, c, (size_t)-1 - (size_t)from) : (char *)from + strlen(from);
}
