#include <string.h>
#include "vector.h"

/* The first block from `at` on, in steps of 64, that is close to a byte c or the end. */
static inline uintptr_t skip(uintptr_t at, v16 c)
{
	for (; !(at & 63); at += 64) {
		const v16 *p = (const v16 *)at;
		v16 any = matches(p[0], c, 1) | matches(p[1], c, 1) | (matches(p[2], c, 1) | matches(p[3], c, 1));
		if (__builtin_wasm_any_true_v128(any)) break;
	}
	return at;
}

char *strrchr(const char *s, int c)
{
	if (!(unsigned char)c) return (char *)s + strlen(s);
	v16 wanted = splat(c);
	uintptr_t at = (uintptr_t)s & -16, last = 0;
	unsigned mask = -1u << ((uintptr_t)s & 15), found = 0;
	for (unsigned steps = 1;; steps++, mask = -1) {
		v16 v = *(const v16 *)at;
		unsigned here = equal_mask(v, wanted) & mask, end = equal_mask(v, splat(0)) & mask;
		if (end) here &= end - 1;
		if (here) {
			last = at;
			found = here;
		}
		if (end) return found ? (char *)last + 31 - __builtin_clz(found) : 0;
		at += 16;
		if (steps >= 4) at = skip(at, wanted);
	}
}
