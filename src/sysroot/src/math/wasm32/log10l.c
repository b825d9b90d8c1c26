#include "quad.h"

long double log10l(long double x)
{
	int k;
	if (!(x > 0) || x == INFINITY) return logl(x);
	long double m = reduce_pow2(x, &k);
	return k*LOG10_2_HI + (log1p_small(m) * LOG10E + k*LOG10_2_LO);
}
