#include "quad.h"

long double expl(long double x)
{
	int k;
	if (x != x) return x;
	if (x > 11356.6L) return x * 0x1p16383L;
	if (x < -11434) return x == -INFINITY ? 0 : 0x1p-16382L * 0x1p-16382L;
	long double e = expm1_small(reduce_ln2(x, &k));
	return scalbnl(1 + e, k);
}
