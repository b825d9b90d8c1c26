#include <string.h>
#include "vector.h"

int memcmp(const void *vl, const void *vr, size_t n)
{
	const unsigned char *l = vl, *r = vr;
	for (; n >= 16; n -= 16, l += 16, r += 16) {
		unsigned differ = equal_mask(*(const v16u *)l, *(const v16u *)r) ^ 0xffff;
		if (differ) {
			int i = __builtin_ctz(differ);
			return l[i] - r[i];
		}
	}
	for (; n >= 8; n -= 8, l += 8, r += 8) {
		uint64_t differ = *(const u64u *)l ^ *(const u64u *)r;
		if (differ) {
			int i = __builtin_ctzll(differ) / 8;
			return l[i] - r[i];
		}
	}
	if (n >= 4) {
		uint32_t differ = *(const u32u *)l ^ *(const u32u *)r;
		if (differ) {
			int i = __builtin_ctz(differ) / 8;
			return l[i] - r[i];
		}
		n -= 4;
		l += 4;
		r += 4;
	}
	for (; n; n--, l++, r++)
		if (*l != *r) return *l - *r;
	return 0;
}
