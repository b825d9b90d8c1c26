/* fork returns twice, which the engine can only do for programs whose code was prepared for it when
 * they were linked. So it has an import of its own: a program that never forks does not import it
 * and runs unprepared. */
#include "syscall.h"
#include "pthread_impl.h"
#include "cancel.h"

__attribute__((__import_module__("lind"), __import_name__("fork")))
int __lind_fork(void);

/* The thread that was cancelling this one is not in the child. */
static int forked(int result)
{
	if (!result) a_and(&__pthread_self()->cancel, ~CANCEL_SENDING);
	return result;
}

#undef __syscall0
#define SYS_fork (-1)
#define __syscall0(n) ((n) == SYS_fork ? forked(__lind_fork()) : (__syscall0)(n))

#include "../_Fork.c"
