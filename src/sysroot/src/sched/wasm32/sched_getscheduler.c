/* musl refuses this: on Linux the calls apply to a thread, by POSIX to a process. Programs for
 * Linux expect its kernel's answer. */
#include <sched.h>
#include "syscall.h"

int sched_getscheduler(pid_t pid)
{
	return syscall(SYS_sched_getscheduler, pid);
}
