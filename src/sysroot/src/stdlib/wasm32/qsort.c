/* A merge sort, which compares least, and is stable as glibc's is: programs have come to lean on that. Where
 * there is no memory for it the generic sort takes over, which needs none. */
#define _BSD_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define __qsort_r __smoothsort
#define qsort_r __smoothsort_r
#include "../qsort.c"
#undef __qsort_r
#undef qsort_r

#define ON_STACK 1024
/* Wider elements are sorted by their addresses and moved once. */
#define WIDE 32

struct sort {
	size_t width;
	int (*plain)(const void *, const void *); /* qsort's; or, for qsort_r: */
	int (*compare)(const void *, const void *, void *);
	void *arg;
	unsigned char *spare; /* as large as the array, or a buffer for half of it */
	int indirect;
};

static inline int in_order(const struct sort *s, const void *a, const void *b)
{
	if (s->indirect) {
		a = *(const void **)a;
		b = *(const void **)b;
	}
	return (s->plain ? s->plain(a, b) : s->compare(a, b, s->arg)) <= 0;
}

/* Merges base[0..half) and base[half..n). The left half moves out of the way; what is left of the right one
 * at the end is in place already. */
static inline __attribute__((__always_inline__))
void merge(const struct sort *s, unsigned char *base, size_t half, size_t n, size_t width)
{
	unsigned char *right = base + half*width, *end = base + n*width;
	unsigned char *left = s->spare, *left_end = left + half*width;
	memcpy(left, base, half*width);
	for (unsigned char *to = base; left < left_end; to += width) {
		if (right == end || in_order(s, left, right)) {
			memcpy(to, left, width);
			left += width;
		} else {
			memcpy(to, right, width);
			right += width;
		}
	}
}

static void merge_sort(const struct sort *s, unsigned char *base, size_t n)
{
	size_t width = s->width, half = n/2;
	if (n < 2) return;
	unsigned char *right = base + half*width;
	merge_sort(s, base, half);
	merge_sort(s, right, n - half);
	if (in_order(s, right - width, right)) return;
	switch (width) {
	case 4: merge(s, base, half, n, 4); break;
	case 8: merge(s, base, half, n, 8); break;
	case 16: merge(s, base, half, n, 16); break;
	default: merge(s, base, half, n, width);
	}
}

/* Puts each element where its address ended up, following the cycles. `hand` holds one element. */
static void permute(unsigned char *base, unsigned char **order, size_t n, size_t width, unsigned char *hand)
{
	for (size_t i = 0; i < n; i++) {
		unsigned char *hole = base + i*width;
		if (order[i] == hole) continue;
		memcpy(hand, hole, width);
		for (size_t at = i;;) {
			unsigned char *from = order[at];
			order[at] = base + at*width;
			if (from == base + i*width) {
				memcpy(order[at], hand, width);
				break;
			}
			memcpy(order[at], from, width);
			at = (from - base) / width;
		}
	}
}

static int sort_wide(struct sort *s, unsigned char *base, size_t n, size_t width)
{
	unsigned char **order = malloc(n*sizeof *order + n/2*sizeof *order + width);
	if (!order) return -1;
	for (size_t i = 0; i < n; i++) order[i] = base + i*width;
	s->indirect = 1;
	s->width = sizeof *order;
	s->spare = (unsigned char *)(order + n);
	merge_sort(s, (unsigned char *)order, n);
	permute(base, order, n, width, s->spare + n/2*sizeof *order);
	free(order);
	return 0;
}

static int wrapped(const void *a, const void *b, void *plain)
{
	return ((int (*)(const void *, const void *))plain)(a, b);
}

static void sort(struct sort *s, unsigned char *base, size_t n)
{
	size_t width = s->width;
	unsigned char on_stack[ON_STACK];
	if (n < 2 || !width) return;
	if (width > WIDE) {
		if (!sort_wide(s, base, n, width)) return;
	} else {
		s->spare = n/2*width > sizeof on_stack ? malloc(n/2*width) : on_stack;
		if (s->spare) {
			merge_sort(s, base, n);
			if (s->spare != on_stack) free(s->spare);
			return;
		}
	}
	if (s->plain) __smoothsort(base, n, width, wrapped, s->plain);
	else __smoothsort(base, n, width, s->compare, s->arg);
}

void __qsort_r(void *base, size_t n, size_t width, cmpfun compare, void *arg)
{
	sort(&(struct sort){ .width = width, .compare = compare, .arg = arg }, base, n);
}

void qsort(void *base, size_t n, size_t width, int (*compare)(const void *, const void *))
{
	sort(&(struct sort){ .width = width, .plain = compare }, base, n);
}

weak_alias(__qsort_r, qsort_r);
