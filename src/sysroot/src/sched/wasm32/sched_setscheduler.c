/* musl refuses this: to Linux the calls are about a thread, to POSIX about a process. Programs for
 * Linux expect what its kernel says. */
#include <sched.h>
#include "syscall.h"

int sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
	return syscall(SYS_sched_setscheduler, pid, policy, param);
}
