#include "quad.h"

long double log1pl(long double x)
{
	if (x != x || x == 0 || x == INFINITY) return x;
	if (x <= -1) return x == -1 ? x/0.0L : (x - x) / 0.0L;
	if (x > -0.29L && x < 0.41L) return log1p_small(x);
	long double u = 1 + x;
	/* The part of the sum that the addition lost. */
	long double lost = u > 2 ? 1 - (u - x) : x - (u - 1);
	return logl(u) + lost/u;
}
