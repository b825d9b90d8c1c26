#include <math.h>

double ceil(double x)
{
	return __builtin_ceil(x);
}
