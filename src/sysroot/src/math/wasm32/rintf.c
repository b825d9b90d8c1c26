#include <math.h>

float rintf(float x)
{
	return __builtin_rintf(x);
}
