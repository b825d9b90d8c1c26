#include "quad.h"

long double logl(long double x)
{
	int k;
	if (x != x || x == INFINITY) return x;
	if (x <= 0) return x == 0 ? -1 / (x*x) : (x - x) / 0.0L;
	long double m = reduce_pow2(x, &k);
	return k*LN2_HI + (log1p_small(m) + k*LN2_LO);
}
