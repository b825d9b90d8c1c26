#include <string.h>
#include "vector.h"

int strncmp(const char *sl, const char *sr, size_t n)
{
	const unsigned char *l = (const void *)sl, *r = (const void *)sr;
	while (n) {
		if (in_page(l) && in_page(r)) {
			v16 a = *(const v16u *)l, b = *(const v16u *)r;
			unsigned stop = equal_mask(a, b) ^ 0xffff | equal_mask(a, splat(0));
			if (stop) {
				unsigned i = __builtin_ctz(stop);
				return i < n ? l[i] - r[i] : 0;
			}
			if (n <= 16) return 0;
			l += 16;
			r += 16;
			n -= 16;
		} else {
			if (*l != *r || !*l) return *l - *r;
			l++;
			r++;
			n--;
		}
	}
	return 0;
}
