#include <math.h>

double rint(double x)
{
	return __builtin_rint(x);
}
