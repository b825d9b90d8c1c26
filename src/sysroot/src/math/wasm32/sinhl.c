#include "quad.h"

long double sinhl(long double x)
{
	long double a = fabsl(x), t;
	if (a < 40) {
		t = expm1l(a);
		t = (t + t/(t + 1)) / 2;
	} else {
		t = expl(a / 2);
		t = t/2 * t;
	}
	return copysignl(t, x);
}
