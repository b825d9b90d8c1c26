#include <math.h>

double nearbyint(double x)
{
	return __builtin_nearbyint(x);
}
