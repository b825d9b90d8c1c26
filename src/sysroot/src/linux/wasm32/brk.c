/* malloc tolerates that others move the break: see extend_break and trim. */
#define _BSD_SOURCE
#include <errno.h>
#include <stdint.h>
#include <unistd.h>
#include "syscall.h"

int brk(void *end)
{
	return (uintptr_t)__syscall(SYS_brk, end) == (uintptr_t)end ? 0 : __syscall_ret(-ENOMEM);
}
