/* qsort and qsort_r on elements of all widths: random keys, orders that sorts like least,
 * comparisons that lie or never return. Every element carries its number, so that none can be lost
 * or doubled. */
#include "check.h"

#include <setjmp.h>

#define MOST   3000
#define WIDEST 300
#define GUARD  64

static uint64_t state = 0x9e3779b97f4a7c15;
static unsigned char space[MOST * WIDEST + 2 * GUARD], *const base = space + GUARD;
static unsigned char before[MOST * WIDEST];
static size_t width, calls, leave_at;
static jmp_buf out;

static size_t any(size_t below)
{
	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (size_t)(state >> 20) % below;
}

/* An element: a key of up to two bytes, then its number as far as it fits, then bytes that follow
 * from it. */
static unsigned key(const void *element)
{
	const unsigned char *e = element;

	return width < 4 ? e[0] : e[0] * 256u + e[1];
}

static void make(unsigned char *e, unsigned k, size_t number)
{
	for (size_t i = 0; i < width; i++)
		e[i] = (unsigned char)(number * 31 + i * 7);
	e[0] = (unsigned char)(width < 4 ? k : k >> 8);
	if (width >= 4) {
		e[1] = (unsigned char)k;
		e[2] = (unsigned char)number;
		e[3] = (unsigned char)(number >> 8);
	} else if (width > 1) {
		e[1] = (unsigned char)number;
	}
}

static int by_key(const void *a, const void *b)
{
	unsigned x = key(a), y = key(b);

	/* C11 7.22.5: what is compared is in the array. */
	if (((uintptr_t)a - (uintptr_t)base) % width || ((uintptr_t)b - (uintptr_t)base) % width ||
	    (uintptr_t)a - (uintptr_t)base >= sizeof space)
		errno = EDOM;
	return x < y ? -1 : x > y ? 1 : 0;
}

static int by_key_with(const void *a, const void *b, void *factor)
{
	return by_key(a, b) * *(int *)factor;
}

static int lie(const void *a, const void *b)
{
	(void)a, (void)b;
	return (int)any(3) - 1;
}

static int lie_always(const void *a, const void *b, void *answer)
{
	(void)a, (void)b;
	return *(int *)answer;
}

static int leaves(const void *a, const void *b)
{
	if (++calls == leave_at)
		longjmp(out, 1);
	return by_key(a, b);
}

static int whole(const void *a, const void *b)
{
	return memcmp(a, b, width);
}

/* Whether there are the same elements as before, by sorting both plainly: a heap sort of our
 * own. */
static void plain_sort(unsigned char *v, size_t n)
{
	unsigned char t[WIDEST];

	for (size_t start = n / 2, end = n; end > 1;) {
		size_t root, child;

		if (start) {
			start--;
		} else {
			end--;
			memcpy(t, v, width);
			memcpy(v, v + end * width, width);
			memcpy(v + end * width, t, width);
		}
		for (root = start; (child = 2 * root + 1) < end; root = child) {
			if (child + 1 < end && whole(v + child * width, v + (child + 1) * width) < 0)
				child++;
			if (whole(v + root * width, v + child * width) >= 0)
				break;
			memcpy(t, v + root * width, width);
			memcpy(v + root * width, v + child * width, width);
			memcpy(v + child * width, t, width);
		}
	}
}

static int guarded(size_t n)
{
	for (size_t i = 0; i < GUARD; i++)
		if (space[i] != 0xa5 || base[n * width + i] != 0xa5)
			return 0;
	return 1;
}

static void fill(size_t n)
{
	int kind = (int)any(7);

	memset(space, 0xa5, GUARD + n * width + GUARD);
	for (size_t i = 0; i < n; i++) {
		unsigned k = 0;

		switch (kind) {
		case 0:
			k = (unsigned)any(65536);
			break;
		case 1:
			k = (unsigned)any(4);
			break;
		case 2:
			k = (unsigned)i;
			break;
		case 3:
			k = (unsigned)(n - i);
			break;
		case 4:
			k = (unsigned)(i < n / 2 ? i : n - i);
			break;
		case 5:
			k = (unsigned)(any(20) ? i : any(65536));
			break;
		default:
			k = 7;
		}
		make(base + i * width, k, i);
	}
	memcpy(before, base, n * width);
}

static void check_same(size_t n)
{
	plain_sort(before, n);
	plain_sort(base, n);
	NEED(!memcmp(before, base, n * width));
	NEED(guarded(n));
}

static void round_of(size_t n)
{
	int factor = 1;

	fill(n);
	errno = ENOTTY;
	switch (any(6)) {
	case 0:
		qsort(base, n, width, lie);
		break;
	case 1:
		factor = (int)any(3) - 1;
		qsort_r(base, n, width, lie_always, &factor);
		break;
	case 2:
		factor = -1;
		/* fallthrough */
	case 3:
		qsort_r(base, n, width, by_key_with, &factor);
		for (size_t i = 1; i < n; i++)
			NEED(by_key(base + (i - 1) * width, base + i * width) * factor <= 0);
		break;
	default:
		qsort(base, n, width, by_key);
		for (size_t i = 1; i < n; i++)
			NEED(by_key(base + (i - 1) * width, base + i * width) <= 0);
	}
	CHECK_EQ(errno, ENOTTY);
	check_same(n);
}

/* A comparison that does not return: the memory around the array stays, and the next sort works. */
static void left_early(size_t n)
{
	fill(n);
	calls = 0;
	leave_at = 1 + any(n);
	if (!setjmp(out))
		qsort(base, n, width, leaves);
	NEED(guarded(n));
}

static void inner(size_t n);

static int nested(const void *a, const void *b)
{
	if (calls++ % 16 == 0)
		inner(5);
	return by_key(a, b);
}

static int ints(const void *a, const void *b)
{
	return (*(const int *)a > *(const int *)b) - (*(const int *)a < *(const int *)b);
}

static void inner(size_t n)
{
	int v[8] = { 5, 3, 9, 1, 7, 8, 2, 6 };

	qsort(v, n, sizeof *v, ints);
	for (size_t i = 1; i < n; i++)
		NEED(v[i - 1] < v[i]);
}

int main(void)
{
	static const size_t widths[] = { 1, 2, 3, 4, 5, 7, 8, 12, 16, 24, 31, 32, 33, 40, 64, 100, 299 };

	for (int i = 0; i < 1500 && !check_failures; i++) {
		width = any(4) ? widths[any(sizeof widths / sizeof *widths)] : 1 + any(WIDEST - 1);
		round_of(any(10) ? any(60) : any(width > 40 ? 500 : MOST));
		if (i % 10 == 0)
			left_early(2 + any(400));
	}
	width = 4;
	fill(200);
	qsort(base, 200, width, nested);
	check_same(200);
	return check_done();
}
