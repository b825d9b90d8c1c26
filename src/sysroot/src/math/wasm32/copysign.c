#include <math.h>

double copysign(double x, double y)
{
	return __builtin_copysign(x, y);
}
