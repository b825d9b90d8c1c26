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
	int (*compare)(const void *, const void *, void *);
	void *arg;
	unsigned char *spare; /* as large as the array, or a buffer for half of it */
	int indirect;
};

static inline void copy(unsigned char *to, const unsigned char *from, size_t width)
{
	switch (width) {
	case 4: memcpy(to, from, 4); break;
	case 8: memcpy(to, from, 8); break;
	case 16: memcpy(to, from, 16); break;
	default: memcpy(to, from, width);
	}
}

static inline int in_order(const struct sort *s, const unsigned char *a, const unsigned char *b)
{
	if (s->indirect) return s->compare(*(void **)a, *(void **)b, s->arg) <= 0;
	return s->compare(a, b, s->arg) <= 0;
}

static void merge_sort(const struct sort *s, unsigned char *base, size_t n)
{
	size_t width = s->width, half = n/2;
	if (n < 2) return;
	unsigned char *right = base + half*width, *end = base + n*width;
	merge_sort(s, base, half);
	merge_sort(s, right, n - half);
	if (n > 8 && in_order(s, right - width, right)) return;

	/* The left half moves out of the way; what is left of the right one is in place already. */
	unsigned char *left = s->spare, *left_end = left + half*width;
	memcpy(left, base, half*width);
	for (unsigned char *to = base; left < left_end; to += width) {
		if (right == end || in_order(s, left, right)) {
			copy(to, left, width);
			left += width;
		} else {
			copy(to, right, width);
			right += width;
		}
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

void __qsort_r(void *base, size_t n, size_t width, cmpfun compare, void *arg)
{
	struct sort s = { width, compare, arg };
	unsigned char on_stack[ON_STACK];
	if (n < 2 || !width) return;
	if (width > WIDE) {
		if (sort_wide(&s, base, n, width)) __smoothsort(base, n, width, compare, arg);
		return;
	}
	s.spare = on_stack;
	if (n/2*width > sizeof on_stack) {
		s.spare = malloc(n/2*width);
		if (!s.spare) {
			__smoothsort(base, n, width, compare, arg);
			return;
		}
	}
	merge_sort(&s, base, n);
	if (s.spare != on_stack) free(s.spare);
}

weak_alias(__qsort_r, qsort_r);
