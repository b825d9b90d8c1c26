#include "quad.h"

long double log2l(long double x)
{
	int k;
	if (!(x > 0) || x == INFINITY) return logl(x);
	long double m = reduce_pow2(x, &k);
	return k + log1p_small(m) * LOG2E;
}
