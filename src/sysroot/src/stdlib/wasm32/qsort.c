/* A merge sort, which compares least, and is stable as glibc's is: programs have come to lean on
 * that. Without memory for it, the generic sort takes over, which needs none. */
#define _BSD_SOURCE
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define __qsort_r __smoothsort
#define qsort_r __smoothsort_r
#include "../qsort.c"
#undef __qsort_r
#undef qsort_r

#define ON_STACK 2048
/* Wider elements are sorted by their addresses and moved once. */
#define WIDE 32

/* The most elements that are inserted one by one. */
#define FEW 4

typedef int plain_compare(const void *, const void *);

/* The order: the function, with the argument for qsort_r. Constant wherever this is inlined are
 * `indirect` (the elements are addresses of those to compare), `plain` (the function is qsort's),
 * and the width, if it is a frequent one. All are in registers, unlike the fields of a struct. */
#define ORDER void (*function)(void), void *arg, int indirect, int plain
#define SAME_ORDER function, arg, indirect, plain

static inline __attribute__((__always_inline__))
int in_order(ORDER, const void *a, const void *b)
{
	if (indirect) {
		a = *(const void *const *)a;
		b = *(const void *const *)b;
	}
	return (plain ? ((plain_compare *)function)(a, b) : ((cmpfun)function)(a, b, arg)) <= 0;
}

/* Libc is compiled without built-in functions, so memcpy is named as one. */
#define move(to, from, width) __builtin_memcpy(to, from, width)

static inline __attribute__((__always_inline__))
void insert(ORDER, size_t width, unsigned char *base, size_t n)
{
	unsigned char hand[WIDE], *end = base + n*width;
	for (unsigned char *next = base + width; next < end; next += width)
		for (unsigned char *at = next; at > base && !in_order(SAME_ORDER, at - width, at); at -= width) {
			move(hand, at, width);
			move(at, at - width, width);
			move(at - width, hand, width);
		}
}

/* Merges base[0..half) and base[half..n) into the spare memory and puts the result back; C wants
 * all comparisons to be of elements where they are in the array. Even if the comparisons contradict
 * one another, each step takes an element of the array. The step has no branch: it would be guessed
 * wrong half the time. */
static inline __attribute__((__always_inline__))
void merge(ORDER, size_t width, unsigned char *spare, unsigned char *base, size_t half, size_t n)
{
	unsigned char *to = spare, *left = base, *middle = base + half*width;
	unsigned char *right = middle, *end = base + n*width;
	while (left < middle && right < end) {
		size_t by = in_order(SAME_ORDER, left, right) ? width : 0;
		const unsigned char *next = by ? left : right;
		move(to, next, width);
		to += width;
		left += by;
		right += width - by;
	}
	/* The rest of the right half is in its place already. */
	memmove(base + (to - spare), left, middle - left);
	memcpy(base, spare, to - spare);
}

#define SORT(name, indirect, plain, fixed) \
static void name(void (*function)(void), void *arg, size_t wide, unsigned char *spare, unsigned char *base, size_t n) \
{ \
	size_t width = fixed ? fixed : wide, half = n/2; \
	unsigned char *right = base + half*width; \
	if (n <= FEW) { \
		insert(function, arg, indirect, plain, width, base, n); \
		return; \
	} \
	name(function, arg, wide, spare, base, half); \
	name(function, arg, wide, spare, right, n - half); \
	if (in_order(function, arg, indirect, plain, right - width, right)) return; \
	merge(function, arg, indirect, plain, width, spare, base, half, n); \
}

SORT(plain_4, 0, 1, 4)
SORT(plain_8, 0, 1, 8)
SORT(plain_any, 0, 1, 0)
SORT(plain_addresses, 1, 1, sizeof(void *))
SORT(with_arg_4, 0, 0, 4)
SORT(with_arg_8, 0, 0, 8)
SORT(with_arg_any, 0, 0, 0)
SORT(with_arg_addresses, 1, 0, sizeof(void *))

static void merge_sort(void (*function)(void), void *arg, int plain, size_t width, unsigned char *spare, unsigned char *base, size_t n)
{
	if (width == 4) (plain ? plain_4 : with_arg_4)(function, arg, width, spare, base, n);
	else if (width == 8) (plain ? plain_8 : with_arg_8)(function, arg, width, spare, base, n);
	else (plain ? plain_any : with_arg_any)(function, arg, width, spare, base, n);
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

static int sort_wide(void (*function)(void), void *arg, int plain, unsigned char *base, size_t n, size_t width)
{
	unsigned char **order = malloc(2*n*sizeof *order + width);
	if (!order) return -1;
	for (size_t i = 0; i < n; i++) order[i] = base + i*width;
	unsigned char *spare = (unsigned char *)(order + n);
	(plain ? plain_addresses : with_arg_addresses)(function, arg, width, spare, (unsigned char *)order, n);
	permute(base, order, n, width, spare + n*sizeof *order);
	free(order);
	return 0;
}

static int wrapped(const void *a, const void *b, void *plain)
{
	return ((plain_compare *)plain)(a, b);
}

static void sort(void (*function)(void), void *arg, int plain, unsigned char *base, size_t n, size_t width)
{
	unsigned char on_stack[ON_STACK], *spare = on_stack;
	if (n < 2 || !width) return;
	int error = errno;
	if (width > WIDE) {
		if (!sort_wide(function, arg, plain, base, n, width)) return;
	} else {
		if (n*width > sizeof on_stack) spare = malloc(n*width);
		if (spare) {
			merge_sort(function, arg, plain, width, spare, base, n);
			if (spare != on_stack) free(spare);
			return;
		}
	}
	errno = error;
	if (plain) __smoothsort(base, n, width, wrapped, (void *)function);
	else __smoothsort(base, n, width, (cmpfun)function, arg);
}

void __qsort_r(void *base, size_t n, size_t width, cmpfun compare, void *arg)
{
	sort((void (*)(void))compare, arg, 0, base, n, width);
}

void qsort(void *base, size_t n, size_t width, plain_compare *compare)
{
	sort((void (*)(void))compare, 0, 1, base, n, width);
}

weak_alias(__qsort_r, qsort_r);
