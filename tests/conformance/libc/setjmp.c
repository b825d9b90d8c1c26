/* setjmp and longjmp: out of deep calls, with values, again and again, across functions that hold
 * state. */
#include "check.h"

#include <setjmp.h>

static jmp_buf outer, inner;
static volatile int depth, outward = 1;

static __attribute__((noinline)) void dive(int levels)
{
	volatile char frame[64];

	frame[0] = (char)levels;
	depth++;
	if (levels > 0)
		dive(levels - 1);
	else if (outward)
		longjmp(outer, 42);
	/* Never reached, but keeps the frames from being merged. */
	depth += frame[0];
}

static int rounds(void)
{
	volatile int count = 0;

	if (setjmp(inner) < 100) {
		count++;
		if (count < 100)
			longjmp(inner, count);
	}
	return count;
}

static int compare(const void *a, const void *b)
{
	(void)a;
	(void)b;
	longjmp(outer, 7);
}

static int nested(void)
{
	volatile int log = 0;

	if (setjmp(outer) == 0) {
		if (setjmp(inner) == 0) {
			log = 1;
			longjmp(inner, 1);
		}
		log = log * 10 + 2;
		longjmp(outer, 1);
	}
	return log * 10 + 3;
}

int main(void)
{
	static const int depths[] = { 0, 1, 10, 1000 };
	volatile int i, kept = 5;
	sigjmp_buf with_mask;
	int value;

	for (i = 0; i < 4; i++) {
		depth = 0;
		value = setjmp(outer);
		if (value == 0) {
			kept++;
			dive(depths[i]);
		}
		CHECK_EQ(value, 42);
		CHECK_EQ(depth, depths[i] + 1);
	}
	CHECK_EQ(kept, 9);
	CHECK_EQ(rounds(), 100);
	CHECK_EQ(nested(), 123);
	/* longjmp(buf, 0) makes setjmp return 1. */
	value = setjmp(outer);
	if (value == 0)
		longjmp(outer, 0);
	CHECK_EQ(value, 1);
	/* Through a function of the C library. */
	value = setjmp(outer);
	if (value == 0)
		qsort((int[3]){ 3, 2, 1 }, 3, sizeof(int), compare);
	CHECK_EQ(value, 7);
	value = sigsetjmp(with_mask, 1);
	if (value == 0)
		siglongjmp(with_mask, 3);
	CHECK_EQ(value, 3);
	return check_done();
}
