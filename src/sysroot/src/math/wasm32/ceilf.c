#include <math.h>

float ceilf(float x)
{
	return __builtin_ceilf(x);
}
