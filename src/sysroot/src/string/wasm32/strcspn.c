#define _GNU_SOURCE
#include <string.h>
#include "byteset.h"

size_t strcspn(const char *s, const char *reject)
{
	if (!*reject || !reject[1]) return strchrnul(s, *reject) - s;
	/* The end is mostly near: then a set is not worth making. */
	if (in_page(s)) {
		v16 v = *(const v16u *)s, hit = v == splat(0);
		for (const char *r = reject; *r; r++) hit |= v == splat(*r);
		unsigned found = __builtin_wasm_bitmask_i8x16(hit);
		if (found) return __builtin_ctz(found);
	}
	struct byteset set = byteset(reject);
	const v16 *p = (const v16 *)((uintptr_t)s & -16);
	unsigned wanted = -1u << ((uintptr_t)s & 15);
	for (;; p++, wanted = -1) {
		unsigned found = (members(set, *p) | equal_mask(*p, splat(0))) & wanted;
		if (found) return (uintptr_t)p + __builtin_ctz(found) - (uintptr_t)s;
	}
}
