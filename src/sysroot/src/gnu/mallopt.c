#include <malloc.h>

/* The numbers tune glibc's own allocator: those that it accepts change nothing here, and the one
 * that it refuses is refused. */
int mallopt(int parameter, int value)
{
	return parameter != M_MXFAST || (value >= 0 && (unsigned)value <= 80 * sizeof(size_t) / 4);
}
