#include <sys/pidfd.h>
#include "syscall.h"

int pidfd_open(pid_t pid, unsigned flags)
{
	return syscall(SYS_pidfd_open, pid, flags);
}

int pidfd_getfd(int fd, int target, unsigned flags)
{
	return syscall(SYS_pidfd_getfd, fd, target, flags);
}

int pidfd_send_signal(int fd, int sig, siginfo_t *info, unsigned flags)
{
	return syscall(SYS_pidfd_send_signal, fd, sig, info, flags);
}
