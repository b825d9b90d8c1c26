#include "quad.h"

long double expm1l(long double x)
{
	int k;
	if (x != x || x == 0) return x;
	if (x > 11356.6L) return x * 0x1p16383L;
	if (x < -80) return -1;
	long double e = expm1_small(reduce_ln2(x, &k));
	if (k == 0) return e;
	if (k > 120) return scalbnl(1 + e, k);
	return scalbnl(e + (1 - scalbnl(1, -k)), k);
}
