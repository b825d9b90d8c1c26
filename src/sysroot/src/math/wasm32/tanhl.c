#include "quad.h"

long double tanhl(long double x)
{
	long double a = fabsl(x), t;
	if (a < 40) {
		t = expm1l(2*a);
		t = t/(t + 2);
	} else {
		t = x != x ? x : 1;
	}
	return copysignl(t, x);
}
