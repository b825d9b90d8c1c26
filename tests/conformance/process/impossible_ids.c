/* Numbers that no process, group or session can have: what waits, signals and groups say of
 * them. */
#include "check.h"

#include <limits.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define PIDFD ((idtype_t)3)
/* Nothing here is numbered so high, and its negative is no more a group. */
#define NOBODY (INT_MAX - 7)

static siginfo_t info;

static void check_wait4(pid_t child)
{
	int status;

	CHECK_ERRNO(waitpid(INT_MIN, &status, WNOHANG), ESRCH);
	CHECK_ERRNO(waitpid(INT_MIN, &status, 0), ESRCH);
	CHECK_ERRNO(waitpid(NOBODY, &status, 0), ECHILD);
	CHECK_ERRNO(waitpid(-NOBODY, &status, 0), ECHILD);
	CHECK_ERRNO(waitpid(INT_MAX, &status, WNOHANG), ECHILD);
	CHECK_ERRNO(waitpid(-INT_MAX, &status, WNOHANG), ECHILD);
	CHECK_ERRNO(waitpid(getpid(), &status, 0), ECHILD);
	CHECK_ERRNO(waitpid(child, &status, 0x100), EINVAL);
	CHECK_ERRNO(syscall(SYS_wait4, (long)child, &status, (long)WEXITED, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_wait4, (long)child, &status, (long)(WNOWAIT | WNOHANG), 0L), EINVAL);
	/* Nothing to tell, nothing is written. */
	CHECK_EQ(syscall(SYS_wait4, (long)child, 8L, (long)WNOHANG, 8L), 0);
	CHECK_EQ(waitpid(0, &status, WNOHANG), 0);
	CHECK_EQ(waitpid(-getpgrp(), &status, WNOHANG), 0);
}

static void check_waitid(pid_t child)
{
	int how = WEXITED | WNOHANG;

	CHECK_ERRNO(waitid(P_PID, 0, &info, how), EINVAL);
	CHECK_ERRNO(waitid(P_PID, (id_t)-1, &info, how), EINVAL);
	CHECK_ERRNO(waitid(P_PID, (id_t)INT_MIN, &info, how), EINVAL);
	CHECK_ERRNO(waitid(P_PID, NOBODY, &info, how), ECHILD);
	CHECK_ERRNO(waitid(P_PGID, (id_t)-1, &info, how), EINVAL);
	CHECK_ERRNO(waitid(P_PGID, (id_t)INT_MIN, &info, how), EINVAL);
	CHECK_EQ(waitid(P_PGID, 0, &info, how), 0);
	CHECK_EQ(waitid(P_ALL, (id_t)-5, &info, how), 0);
	CHECK_ERRNO(waitid(PIDFD, (id_t)-1, &info, how), EINVAL);
	CHECK_ERRNO(waitid(PIDFD, 999, &info, how), EBADF);
	CHECK_ERRNO(waitid((idtype_t)9, (id_t)child, &info, how), EINVAL);
	CHECK_ERRNO(waitid(P_PID, (id_t)child, &info, WNOHANG), EINVAL);
	CHECK_ERRNO(waitid(P_PID, (id_t)child, &info, 0), EINVAL);
	CHECK_ERRNO(waitid(P_PID, (id_t)child, &info, WEXITED | 0x100), EINVAL);
	CHECK_EQ(waitid(P_PID, (id_t)child, NULL, how), 0);
	CHECK_EQ(waitid(P_PID, (id_t)child, &info, WSTOPPED | WCONTINUED | WNOHANG), 0);
}

static void check_others(pid_t child)
{
	CHECK_ERRNO(kill(INT_MIN, 0), ESRCH);
	CHECK_ERRNO(kill(NOBODY, 0), ESRCH);
	CHECK_ERRNO(kill(-NOBODY, 0), ESRCH);
	CHECK_ERRNO(syscall(SYS_tkill, -1L, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_tkill, 0L, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_tgkill, 0L, -1L, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_tgkill, (long)getpid(), (long)NOBODY, 0L), ESRCH);
	CHECK_ERRNO(getpgid(-1), ESRCH);
	CHECK_ERRNO(getpgid(NOBODY), ESRCH);
	CHECK_ERRNO(getsid(-1), ESRCH);
	CHECK_ERRNO(getsid(NOBODY), ESRCH);
	/* A group of 0 is the number of the process, which is then the number that cannot be. */
	CHECK_ERRNO(setpgid(-1, 0), EINVAL);
	CHECK_ERRNO(setpgid(0, -1), EINVAL);
	CHECK_ERRNO(setpgid(-1, 1), ESRCH);
	CHECK_ERRNO(setpgid(NOBODY, 0), ESRCH);
	CHECK_ERRNO(setpgid(child, NOBODY), EPERM);
	CHECK_ERRNO(syscall(SYS_pidfd_open, -1L, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_pidfd_open, 0L, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_pidfd_open, (long)NOBODY, 0L), ESRCH);
	CHECK_ERRNO(syscall(SYS_pidfd_open, (long)child, 1L), EINVAL);
}

int main(void)
{
	int status;
	pid_t child = fork();

	NEED(child >= 0);
	if (!child) {
		for (;;)
			pause();
	}
	check_wait4(child);
	check_waitid(child);
	check_others(child);
	CHECK_EQ(kill(child, SIGKILL), 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	/* Without children the number is looked at all the same. */
	CHECK_ERRNO(waitpid(INT_MIN, &status, 0), ESRCH);
	CHECK_ERRNO(waitpid(-1, &status, 0), ECHILD);
	CHECK_ERRNO(waitid(P_ALL, 0, &info, WEXITED), ECHILD);
	CHECK_ERRNO(waitid(P_PID, 0, &info, WEXITED), EINVAL);
	/* A wait whose status cannot be written still has waited. */
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(3);
	CHECK_ERRNO(syscall(SYS_wait4, (long)child, 8L, 0L, 0L), EFAULT);
	CHECK_ERRNO(waitpid(child, &status, WNOHANG), ECHILD);
	return check_done();
}
