/* Included before a generic file that reads an optional argument whether or not it was passed.
 * Clang passes no buffer at all for an empty `...`, and page zero is not mapped: such a read gets
 * zeros. */
#include <stdarg.h>

static const long __no_varargs[8];

#undef va_start
#define va_start(ap, last) \
	(__builtin_va_start(ap, last), (void)((ap) || ((ap) = (char *)__no_varargs)))
