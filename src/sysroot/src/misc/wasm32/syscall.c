/* syscall(2) for programs. Its arguments are 32-bit words: numbers that the kernel wants as int
 * lose nothing, pointers must not be sign-extended, and 64-bit offsets cannot be passed this
 * way. */
#define _BSD_SOURCE
#include <unistd.h>
#include "varargs.h"
#include "syscall.h"

#undef syscall

long syscall(long n, ...)
{
	unsigned long a[6];
	va_list ap;
	va_start(ap, n);
	for (int i = 0; i < 6; i++) a[i] = va_arg(ap, unsigned long);
	va_end(ap);
	return __syscall_ret(__syscall(n, a[0], a[1], a[2], a[3], a[4], a[5]));
}
