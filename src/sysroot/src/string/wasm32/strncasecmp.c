#define _GNU_SOURCE
#include <strings.h>
#include <ctype.h>
#include "vector.h"

int strncasecmp(const char *sl, const char *sr, size_t n)
{
	const unsigned char *l = (const void *)sl, *r = (const void *)sr;
	while (n) {
		if (n >= 16 && in_page(l) && in_page(r)) {
			v16 a = *(const v16u *)l, b = *(const v16u *)r;
			unsigned stop = equal_mask(lower(a), lower(b)) ^ 0xffff | equal_mask(a, splat(0));
			if (stop) {
				int i = __builtin_ctz(stop);
				return tolower(l[i]) - tolower(r[i]);
			}
			l += 16;
			r += 16;
			n -= 16;
		} else {
			if (!*l || tolower(*l) != tolower(*r)) return tolower(*l) - tolower(*r);
			l++;
			r++;
			n--;
		}
	}
	return 0;
}

int __strncasecmp_l(const char *l, const char *r, size_t n, locale_t loc)
{
	(void)loc;
	return strncasecmp(l, r, n);
}

weak_alias(__strncasecmp_l, strncasecmp_l);
