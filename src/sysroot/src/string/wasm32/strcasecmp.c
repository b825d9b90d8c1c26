#define _GNU_SOURCE
#include <stdint.h>
#include <strings.h>
#include "libc.h"

int strcasecmp(const char *l, const char *r)
{
	return strncasecmp(l, r, SIZE_MAX);
}

int __strcasecmp_l(const char *l, const char *r, locale_t loc)
{
	(void)loc;
	return strcasecmp(l, r);
}

weak_alias(__strcasecmp_l, strcasecmp_l);
