#include "quad.h"

long double acoshl(long double x)
{
	if (x > 0x1p57L) return logl(x) + (LN2_HI + LN2_LO);
	long double t = x - 1;
	return log1pl(t + sqrtl(2*t + t*t));
}
