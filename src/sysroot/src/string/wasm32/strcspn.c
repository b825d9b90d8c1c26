#define _GNU_SOURCE
#include <string.h>
#include "byteset.h"

size_t strcspn(const char *s, const char *reject)
{
	if (!*reject || !reject[1]) return strchrnul(s, *reject) - s;
	struct byteset set = byteset(reject);
	const v16 *p = (const v16 *)((uintptr_t)s & -16);
	unsigned wanted = -1u << ((uintptr_t)s & 15);
	for (;; p++, wanted = -1) {
		unsigned found = (members(set, *p) | equal_mask(*p, splat(0))) & wanted;
		if (found) return (uintptr_t)p + __builtin_ctz(found) - (uintptr_t)s;
	}
}
