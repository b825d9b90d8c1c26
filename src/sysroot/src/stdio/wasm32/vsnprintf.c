/* A stream whose buffer is the string itself. Text that does not fit is counted and dropped. */
#include "stdio_impl.h"
#include <errno.h>
#include <limits.h>
#include <stdint.h>
#include <stdarg.h>
#include <string.h>
#include "print.h"

static size_t write_what_fits(FILE *f, const unsigned char *s, size_t n, stream_mark mark)
{
	size_t room = f->wend - f->wpos, fits = n < room ? n : room;
	(void)mark;
	memcpy(f->wpos, s, fits);
	f->wpos += fits;
	return n;
}

int vsnprintf(char *restrict s, size_t n, const char *restrict format, va_list ap)
{
	unsigned char none[1], *start = n ? (unsigned char *)s : none;
	int count;
	if (n > INT_MAX) {
		errno = EOVERFLOW;
		return -1;
	}
	/* sprintf passes no size: the end of the address space is the limit. */
	if (n > -(uintptr_t)start) n = -(uintptr_t)start;
	FILE f;
	f.flags = 0;
	f.lbf = EOF;
	f.lock = -1;
	f.mode = 0;
	f.write = write_what_fits;
	f.buf = f.wbase = f.wpos = start;
	f.wend = start + (n ? n - 1 : 0);
	f.buf_size = 1;
	count = numbers_arguments(format) ? vfprintf(&f, format, ap) : __print(&f, format, ap);
	*f.wpos = 0;
	return count;
}
