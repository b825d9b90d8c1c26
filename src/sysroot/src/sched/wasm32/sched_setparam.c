/* musl refuses this: to Linux the calls are about a thread, to POSIX about a process. Programs for
 * Linux expect what its kernel says. */
#include <sched.h>
#include "syscall.h"

int sched_setparam(pid_t pid, const struct sched_param *param)
{
	return syscall(SYS_sched_setparam, pid, param);
}
