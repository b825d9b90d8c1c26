#include <stdarg.h>
#include "vector.h"

/* Executes a format without numbered arguments on a stream that is locked and ready to be written
 * to. Returns the number of bytes, or -1; errors of the stream are in its flags. */
hidden int __print(FILE *, const char *, va_list);

/* Whether the format may number its arguments: a $ is rare enough. */
static inline int numbers_arguments(const char *format)
{
	return *find_byte(format, splat('$'), 1, 0);
}
