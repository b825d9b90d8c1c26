/* musl refuses this: on Linux the calls apply to a thread, by POSIX to a process. Programs for
 * Linux expect its kernel's answer. */
#include <sched.h>
#include "syscall.h"

int sched_setscheduler(pid_t pid, int policy, const struct sched_param *param)
{
	return syscall(SYS_sched_setscheduler, pid, policy, param);
}
