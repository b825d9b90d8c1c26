#include <string.h>
#include "vector.h"

static inline v16 difference(const unsigned char *l, const unsigned char *r)
{
	return *(const v16u *)l ^ *(const v16u *)r;
}

/* The number of equal bytes at the start of n, in blocks of 64. */
static inline size_t equal_blocks(const unsigned char *l, const unsigned char *r, size_t n)
{
	size_t i = 0;
	for (; n - i >= 64; i += 64) {
		const unsigned char *p = l + i, *q = r + i;
		v16 any = difference(p, q) | difference(p + 16, q + 16) | (difference(p + 32, q + 32) | difference(p + 48, q + 48));
		if (__builtin_wasm_any_true_v128(any)) break;
	}
	return i;
}

int memcmp(const void *vl, const void *vr, size_t n)
{
	const unsigned char *l = vl, *r = vr;
	for (size_t same; n >= 16; n -= same, l += same, r += same) {
		unsigned differ = equal_mask(*(const v16u *)l, *(const v16u *)r) ^ 0xffff;
		if (differ) {
			int i = __builtin_ctz(differ);
			return l[i] - r[i];
		}
		same = 16;
		if (n > BULK) same += equal_blocks(l + 16, r + 16, n - 16);
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
