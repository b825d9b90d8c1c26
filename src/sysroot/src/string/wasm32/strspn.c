#include <string.h>
#include "byteset.h"

size_t strspn(const char *s, const char *accept)
{
	if (!*accept) return 0;
	/* The end is mostly near: then a set is not worth making. */
	if (in_page(s)) {
		v16 v = *(const v16u *)s, hit = splat(0);
		for (const char *a = accept; *a; a++) hit |= (v16)(v == splat(*a));
		unsigned others = __builtin_wasm_bitmask_i8x16(hit) ^ 0xffff;
		if (others) return __builtin_ctz(others);
	}
	struct byteset set = byteset(accept);
	const v16 *p = (const v16 *)((uintptr_t)s & -16);
	unsigned wanted = -1u << ((uintptr_t)s & 15);
	for (;; p++, wanted = -1) {
		/* 0 is not in any set. */
		unsigned others = (members(set, *p) ^ 0xffff) & wanted;
		if (others) return (uintptr_t)p + __builtin_ctz(others) - (uintptr_t)s;
	}
}
