/* For long double functions, which musl computes in double on ports with a 113-bit long double. */
#include <math.h>
#include <float.h>

#define LN2_HI 0x1.62e42fefa39ef35793c767300000p-1L /* 96 bits: times an exponent it is exact */
#define LN2_LO 0x1.f97b57a079a193394c5b16c5068cp-103L
#define LOG2E 0x1.71547652b82fe1777d0ffda0d23ap0L
#define LOG10E 0x1.bcb7b1526e50e32a6ab7555f5a68p-2L
#define LOG10_2_HI 0x1.34413509f79fef311f12b3580000p-2L
#define LOG10_2_LO 0x1.6f922f04d5a618a87a3e69314bcep-102L

/* exp(r) - 1 for |r| < 0.5: a series for r/256, then eight times (1 + e)^2 - 1. */
static inline long double expm1_small(long double r)
{
	long double x = r * 0x1p-8L, e = 0;
	for (int n = 13; n > 0; n--) e = x/n * (1 + e);
	for (int i = 0; i < 8; i++) e = e * (2 + e);
	return e;
}

/* x = k ln2 + the result. */
static inline long double reduce_ln2(long double x, int *k)
{
	*k = __builtin_rint((double)x * 0x1.71547652b82fep0);
	return x - *k*LN2_HI - *k*LN2_LO;
}

/* log(1 + x) for 1 + x near 1: the double result, improved once, which cubes its error. */
static inline long double log1p_small(long double x)
{
	long double y = log1p((double)x), e = expm1_small(y);
	return y + 2*(x - e)/(2 + x + e);
}

/* x = 2^k (1 + the result), the result between sqrt(1/2) - 1 and sqrt(2) - 1. */
static inline long double reduce_pow2(long double x, int *k)
{
	x = frexpl(x, k);
	if (x < 0.70710678L) {
		x *= 2;
		--*k;
	}
	return x - 1;
}
