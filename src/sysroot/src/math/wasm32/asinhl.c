#include "quad.h"

long double asinhl(long double x)
{
	long double a = fabsl(x), t;
	if (a < 0x1p-57L) return x;
	if (a > 0x1p57L) t = logl(a) + (LN2_HI + LN2_LO);
	else t = log1pl(a + a*a/(1 + sqrtl(a*a + 1)));
	return copysignl(t, x);
}
