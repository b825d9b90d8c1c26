/* Short needles, the most frequent ones, are searched for without knowing where the haystack ends.
 * For others, candidates are places where the needle's first and last byte both match, 16 positions
 * at a time; the generic search, whose time is linear in the worst case, takes over when too many
 * of them fail. */
#include <stddef.h>
#include <string.h>
#include "vector.h"

#define strstr strstr_linear
static char *strstr(const char *, const char *);
#include "../strstr.c"
#undef strstr

/* The longest of the short needles: its end is at most a block away from its beginning. */
#define SHORT 17

/* A 0 in the haystack equals no byte of the needle. */
static inline int begins_with(const char *h, const char *n, size_t l)
{
	for (; l && *h == *n; l--, h++, n++);
	return !l;
}

/* The places in a block where a needle may begin. */
static inline v16 begins(const char *h, v16 first, v16 last, size_t l)
{
	return (v16)(*(const v16u *)h == first) & (v16)(*(const v16u *)(h + l - 1) == last);
}

/* The first place from h on, in steps of 64, where a closer look is needed or the page ends. */
static inline const char *skip(const char *h, v16 first, v16 last, size_t l)
{
	for (; in_page_for(h, 64 + SHORT - 1); h += 64) {
		const v16u *p = (const v16u *)h;
		v16 found = begins(h, first, last, l) | begins(h + 16, first, last, l) |
			(begins(h + 32, first, last, l) | begins(h + 48, first, last, l));
		v16 least = __builtin_elementwise_min(__builtin_elementwise_min(p[0], p[1]), __builtin_elementwise_min(p[2], p[3]));
		if (__builtin_wasm_any_true_v128(found) || !__builtin_wasm_all_true_i8x16(least)) break;
	}
	return h;
}

static char *search_short(const char *h, const char *n, size_t l)
{
	v16 first = splat(n[0]), last = splat(n[l - 1]);
	for (unsigned steps = 1;; h += 16, steps++) {
		if (!in_page_for(h, 16 + SHORT - 1)) {
			for (int i = 0; i < 16; i++) {
				if (begins_with(h + i, n, l)) return (char *)h + i;
				if (!h[i]) return 0;
			}
			continue;
		}
		v16 places = begins(h, first, last, l), ends = (v16)(*(const v16u *)h == splat(0));
		if (!__builtin_wasm_any_true_v128(places | ends)) {
			/* A string that ends soon has ended by now. */
			if (steps % 8 == 0) h = skip(h + 16, first, last, l) - 16;
			continue;
		}
		unsigned found = __builtin_wasm_bitmask_i8x16(places), end = __builtin_wasm_bitmask_i8x16(ends);
		if (end) found &= end - 1 & ~end;
		for (; found; found &= found - 1) {
			const char *at = h + __builtin_ctz(found);
			if (begins_with(at + 1, n + 1, l - 1)) return (char *)at;
		}
		if (end) return 0;
	}
}

/* The bytes of the haystack that are read ahead of the search, which may end early. */
#define AHEAD 512

static char *search(const char *h, const char *n, size_t l)
{
	v16 first = splat(n[0]), last = splat(n[l - 1]);
	const char *end = h;
	size_t failed = 0;
	int whole = 0;

	for (const char *p = h;; p += 16) {
		if (!whole && end - p < (ptrdiff_t)l + 16) {
			size_t more = strnlen(end, l + AHEAD);
			whole = more < l + AHEAD;
			end += more;
		}
		if (end - p < (ptrdiff_t)l) return 0;
		if (!in_page(p) || !in_page(p + l - 1)) {
			for (int i = 0; i < 16 && end - p - i >= (ptrdiff_t)l; i++)
				if (p[i] == *n && !memcmp(p + i, n, l)) return (char *)p + i;
			continue;
		}
		unsigned found = equal_mask(*(const v16u *)p, first) & equal_mask(*(const v16u *)(p + l - 1), last);
		for (; found; found &= found - 1) {
			const char *at = p + __builtin_ctz(found);
			if (end - at < (ptrdiff_t)l) return 0;
			if (!memcmp(at, n, l)) return (char *)at;
			if (++failed > 16 + (size_t)(at - h) / l) return strstr_linear(at + 1, n);
		}
	}
}

char *strstr(const char *h, const char *n)
{
	size_t l = strlen(n);
	if (l < 2) return l ? strchr(h, *n) : (char *)h;
	if (l <= SHORT) return search_short(h, n, l);
	h = strchr(h, *n);
	return h ? search(h, n, l) : 0;
}
