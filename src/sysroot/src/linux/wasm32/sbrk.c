#define _BSD_SOURCE
#include <errno.h>
#include <stdint.h>
#include <unistd.h>
#include "syscall.h"

void *sbrk(intptr_t by)
{
	uintptr_t from = __syscall(SYS_brk, 0), to = from + by;
	if (!by) return (void *)from;
	if ((by > 0) != (to > from) || (uintptr_t)__syscall(SYS_brk, to) != to)
		return (void *)__syscall_ret(-ENOMEM);
	return (void *)from;
}
