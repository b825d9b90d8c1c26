/* Candidates are where the needle's first and last byte both match, 16 positions at a time; the generic
 * search, whose time is linear in the worst case, takes over when too many of them fail. */
#include <stddef.h>
#include <string.h>
#include "vector.h"

#define strstr strstr_linear
static char *strstr(const char *, const char *);
#include "../strstr.c"
#undef strstr

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
	if (!*n) return (char *)h;
	h = strchr(h, *n);
	if (!h || !n[1]) return (char *)h;
	return search(h, n, strlen(n));
}
