/* By squaring for whole exponents up to 2^16; for others exp(y log x) with the logarithm in two
 * parts, since its error grows with y: about 200 units in the last place at 10^400. */
#include "quad.h"

static int is_odd(long double y)
{
	return fabsl(y) < 0x1p113L && fmodl(y, 2) != 0 && truncl(y) == y;
}

/* Zeros, infinities and NaNs are exact, and so is double's answer. */
static long double special(long double x, long double y)
{
	double dx = x != x ? NAN : x == INFINITY ? INFINITY : x == -INFINITY ? -INFINITY
		: x == 0 ? (double)x : fabsl(x) == 1 ? (double)x : copysign(fabsl(x) < 1 ? 0.5 : 2, (double)x);
	double dy = y != y ? NAN : y == INFINITY ? INFINITY : y == -INFINITY ? -INFINITY
		: y == 0 ? (double)y : copysign(is_odd(y) ? 3 : truncl(y) == y ? 2 : 0.5, (double)y);
	return pow(dx, dy);
}

static long double by_squaring(long double x, unsigned n)
{
	long double r = 1;
	for (; n; n >>= 1) {
		if (n & 1) r *= x;
		if (n > 1) x *= x;
	}
	return r;
}

/* exp(y * log(x)) for x > 0. */
static long double by_logarithm(long double x, long double y)
{
	int k, n;
	long double m = reduce_pow2(x, &k);
	long double rough = log1p_small(m);
	/* log(x) = hi + lo, hi short enough for its product with half of y to be exact. */
	long double sum = k*LN2_HI + rough;
	long double hi = (double)sum;
	long double e = expm1_small((double)rough), rest = (double)rough;
	long double lo = (k*LN2_HI - hi) + rest + (2*(m - e)/(2 + m + e) + k*LN2_LO);
	long double y_hi = (double)y, y_lo = y - y_hi;
	long double z_hi = y_hi * hi, z_lo = y_hi * lo + y_lo * (hi + lo);
	long double z = z_hi + z_lo;
	if (z > 11357) return 0x1p16383L * 0x1p16383L;
	if (z < -11434) return 0x1p-16382L * 0x1p-16382L;
	z_lo += z_hi - z;
	long double r = reduce_ln2(z, &n) + z_lo;
	return scalbnl(1 + expm1_small(r), n);
}

long double powl(long double x, long double y)
{
	if (x != x || y != y || x == 0 || y == 0 || x == 1 || fabsl(x) == INFINITY || fabsl(y) == INFINITY
		|| (x == -1 && truncl(y) == y))
		return special(x, y);
	if (x < 0) {
		if (truncl(y) != y) return (x - x) / 0.0L;
		long double r = powl(-x, y);
		return is_odd(y) ? -r : r;
	}
	if (fabsl(y) < 0x1p16L && truncl(y) == y) {
		long double r = by_squaring(x, fabsl(y));
		/* A power that over- or underflowed on the way may have an inverse that does not. */
		if (y > 0) return r;
		if (r != 0 && r != INFINITY && fabsl(r) >= LDBL_MIN) return 1 / r;
	}
	return by_logarithm(x, y);
}
