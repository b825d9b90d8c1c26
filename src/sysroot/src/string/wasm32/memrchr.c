#define _GNU_SOURCE
#include <string.h>
#include "vector.h"

void *__memrchr(const void *m, int c, size_t n)
{
	const unsigned char *s = m, *e = s + n;
	v16 wanted = splat(c);
	for (; e - s >= 64; e -= 64) {
		const v16u *p = (const v16u *)e;
		v16 any = (v16)(p[-1] == wanted) | (v16)(p[-2] == wanted) | (v16)(p[-3] == wanted) | (v16)(p[-4] == wanted);
		if (__builtin_wasm_any_true_v128(any)) break;
	}
	for (; e - s >= 16; e -= 16) {
		unsigned found = equal_mask(*(const v16u *)(e - 16), wanted);
		if (found) return (void *)(e - 16 + 31 - __builtin_clz(found));
	}
	unsigned left = e - s, found;
	if (!left) return 0;
	/* Of the page's last bytes, the block ends with them instead of beginning with them. */
	if (in_page(s)) found = equal_mask(*(const v16u *)s, wanted) & (1u << left) - 1;
	else found = equal_mask(*(const v16u *)(e - 16), wanted) >> (16 - left);
	return found ? (void *)(s + 31 - __builtin_clz(found)) : 0;
}

weak_alias(__memrchr, memrchr);
