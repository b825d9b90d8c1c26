#define _GNU_SOURCE
#include <strings.h>
#include <ctype.h>
#include "vector.h"

int strcasecmp(const char *sl, const char *sr)
{
	const unsigned char *l = (const void *)sl, *r = (const void *)sr;
	for (;;) {
		if (in_page(l) && in_page(r)) {
			v16 a = *(const v16u *)l, b = *(const v16u *)r;
			unsigned stop = equal_mask(lower(a), lower(b)) ^ 0xffff | equal_mask(a, splat(0));
			if (stop) {
				int i = __builtin_ctz(stop);
				return tolower(l[i]) - tolower(r[i]);
			}
			l += 16;
			r += 16;
		} else {
			if (!*l || tolower(*l) != tolower(*r)) return tolower(*l) - tolower(*r);
			l++;
			r++;
		}
	}
}

int __strcasecmp_l(const char *l, const char *r, locale_t loc)
{
	(void)loc;
	return strcasecmp(l, r);
}

weak_alias(__strcasecmp_l, strcasecmp_l);
