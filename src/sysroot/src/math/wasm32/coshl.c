#include "quad.h"

long double coshl(long double x)
{
	long double a = fabsl(x), t;
	if (a < 1) {
		t = expm1l(a);
		return 1 + t*t/(2*(1 + t));
	}
	if (a < 40) {
		t = expl(a);
		return (t + 1/t) / 2;
	}
	t = expl(a / 2);
	return t/2 * t;
}
