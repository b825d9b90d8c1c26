/* Short needles, of which there are most, are looked for without knowing where the haystack ends. Of others, candidates are where the needle's first and last byte both match, 16 positions at a time; the generic
 * search, whose time is linear in the worst case, takes over when too many of them fail. */
#include <stddef.h>
#include <string.h>
#include "vector.h"

#define strstr strstr_linear
static char *strstr(const char *, const char *);
#include "../strstr.c"
#undef strstr

/* From a byte before which a block holds no 0, the last byte of such a needle is in reach. */
#define SHORT 17

/* A 0 in the haystack is nowhere in the needle. */
static inline int begins_with(const char *h, const char *n, size_t l)
{
	for (; l && *h == *n; l--, h++, n++);
	return !l;
}

static char *search_short(const char *h, const char *n, size_t l)
{
	v16 first = splat(n[0]), last = splat(n[l - 1]);
	for (;; h += 16) {
		if (!in_page(h)) {
			for (int i = 0; i < 16; i++) {
				if (begins_with(h + i, n, l)) return (char *)h + i;
				if (!h[i]) return 0;
			}
			continue;
		}
		v16 block = *(const v16u *)h;
		unsigned found = equal_mask(block, first), end = equal_mask(block, splat(0));
		if (end) found &= end - 1 & ~end;
		else if (in_page(h + l - 1)) found &= equal_mask(*(const v16u *)(h + l - 1), last);
		for (; found; found &= found - 1) {
			const char *at = h + __builtin_ctz(found);
			if (begins_with(at + 1, n + 1, l - 1)) return (char *)at;
		}
		if (end) return 0;
	}
}

/* How far the haystack is looked at ahead of the search, which may end early. */
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
