/* The last argument is a union that programs declare themselves, and many pass a plain number for
 * SETVAL instead. Here a union among variable arguments is the address of a copy, unless it has
 * only one member. The value tells the two apart: no address is as small as the numbers that a
 * semaphore may have, or as large as negative ones. */
#include <stdarg.h>
#include <stdint.h>
#include <sys/sem.h>
#include "syscall.h"

/* The lowest mapped address; at the other end as much is unmapped, too. */
#define LOWEST 0x10000

static uintptr_t content(uintptr_t argument)
{
	return argument < LOWEST || argument >= -(uintptr_t)LOWEST ? argument : *(uintptr_t *)argument;
}

int semctl(int id, int num, int cmd, ...)
{
	uintptr_t argument = 0;
	va_list ap;

	switch (cmd) {
	case SETVAL:
	case GETALL:
	case SETALL:
	case IPC_SET:
	case IPC_STAT:
	case IPC_INFO:
	case SEM_INFO:
	case SEM_STAT:
	case SEM_STAT_ANY:
		va_start(ap, cmd);
		argument = content(va_arg(ap, uintptr_t));
		va_end(ap);
	}
	return syscall(SYS_semctl, id, num, cmd, argument);
}
