/* Processes by descriptor: pidfd_open, its end as poll sees it, pidfd_send_signal (which takes
 * /proc/PID too), waitid. */
#include "../check.h"
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef SYS_pidfd_open
#define SYS_pidfd_open        434
#define SYS_pidfd_send_signal 424
#endif
#define P_PIDFD_ 3

static int pidfd_open_(pid_t pid, unsigned flags)
{
	return (int)syscall(SYS_pidfd_open, (long)pid, (long)flags);
}

static int pidfd_send(int fd, int sig, siginfo_t *info, unsigned flags)
{
	return (int)syscall(SYS_pidfd_send_signal, (long)fd, (long)sig, info, (long)flags);
}

static pid_t waiting(void)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0)
		for (;;)
			pause();
	return pid;
}

static int opened(const char *form, pid_t pid, int flags)
{
	char path[64];
	int fd;

	snprintf(path, sizeof path, form, pid, pid);
	fd = open(path, O_RDONLY | flags);
	NEED(fd >= 0);
	return fd;
}

/* The directory of a process does for a signal, and only it: nothing in it, not by O_PATH, and not
 * for waitid. */
static void by_directory(const sigset_t *blocked)
{
	static const char *const others[] = { "/proc/%d/task/%d", "/proc/%d/fd", "/proc/%d/status", "/proc" };
	pid_t pid = waiting();
	siginfo_t info;
	int fd = opened("/proc/%d", getpid(), O_DIRECTORY);

	CHECK_EQ(pidfd_send(fd, SIGUSR1, NULL, 0), 0);
	CHECK_EQ(sigwaitinfo(blocked, &info), SIGUSR1);
	CHECK_EQ(info.si_pid, getpid());
	close(fd);
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		fd = opened(others[i], getpid(), 0);
		CHECK_ERRNO(pidfd_send(fd, 0, NULL, 0), EBADF);
		close(fd);
	}
	fd = opened("/proc/%d", pid, O_PATH);
	CHECK_ERRNO(pidfd_send(fd, 0, NULL, 0), EBADF);
	close(fd);
	fd = opened("/proc/%d", pid, 0);
	CHECK_ERRNO(waitid(P_PIDFD_, (id_t)fd, &info, WEXITED), EBADF);
	CHECK_EQ(pidfd_send(fd, SIGTERM, NULL, 0), 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_ERRNO(pidfd_send(fd, 0, NULL, 0), ESRCH);
	close(fd);
}

int main(void)
{
	struct pollfd poll_for = { .events = POLLIN };
	siginfo_t info;
	pid_t pid = waiting();
	char byte[8];
	int fd, again;

	CHECK_ERRNO(pidfd_open_(0, 0), EINVAL);
	CHECK_ERRNO(pidfd_open_(-1, 0), EINVAL);
	CHECK_ERRNO(pidfd_open_(pid, 1), EINVAL);
	CHECK_ERRNO(pidfd_open_(99999999, 0), ESRCH);
	fd = pidfd_open_(pid, 0);
	NEED(fd >= 0);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_ERRNO(read(fd, byte, sizeof byte), EINVAL);
	CHECK_ERRNO(write(fd, byte, sizeof byte), EINVAL);
	poll_for.fd = fd;
	CHECK_EQ(poll(&poll_for, 1, 0), 0);
	CHECK_EQ(pidfd_send(fd, 0, NULL, 0), 0);
	CHECK_ERRNO(pidfd_send(fd, 99, NULL, 0), EINVAL);
	CHECK_ERRNO(pidfd_send(fd, SIGTERM, NULL, 1 << 20), EINVAL);
	CHECK_ERRNO(pidfd_send(0, SIGTERM, NULL, 0), EBADF);
	memset(&info, 0, sizeof info);
	CHECK_EQ(waitid(P_PIDFD_, (id_t)fd, &info, WEXITED | WNOHANG), 0);
	CHECK_EQ(info.si_pid, 0);
	again = pidfd_open_(pid, O_NONBLOCK);
	NEED(again >= 0);
	CHECK_ERRNO(waitid(P_PIDFD_, (id_t)again, &info, WEXITED), EAGAIN);
	CHECK_EQ(pidfd_send(fd, SIGTERM, NULL, 0), 0);
	CHECK_EQ(poll(&poll_for, 1, 10000), 1);
	CHECK_EQ(poll_for.revents & POLLIN, POLLIN);
	CHECK_EQ(waitid(P_PIDFD_, (id_t)fd, &info, WEXITED | WNOWAIT), 0);
	CHECK_EQ(info.si_pid, pid);
	CHECK_EQ(info.si_status, SIGTERM);
	close(again);
	/* It has ended but is there: it can be opened. */
	again = pidfd_open_(pid, 0);
	NEED(again >= 0);
	poll_for.fd = again;
	CHECK_EQ(poll(&poll_for, 1, 0), 1);
	CHECK_EQ(waitid(P_PIDFD_, (id_t)fd, &info, WEXITED), 0);
	CHECK_ERRNO(waitid(P_PIDFD_, (id_t)fd, &info, WEXITED), ECHILD);
	CHECK_ERRNO(waitid(P_PIDFD_, 0, &info, WEXITED), EBADF);
	CHECK_ERRNO(waitid(P_PIDFD_, 999, &info, WEXITED), EBADF);
	CHECK_ERRNO(pidfd_send(fd, 0, NULL, 0), ESRCH);
	CHECK_ERRNO(pidfd_open_(pid, 0), ESRCH);
	poll_for.fd = fd;
	CHECK_EQ(poll(&poll_for, 1, 0), 1);
	close(fd);
	close(again);

	/* A message to oneself, with what sigqueue gives. */
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, NULL);
	fd = pidfd_open_(getpid(), 0);
	NEED(fd >= 0);
	memset(&info, 0, sizeof info);
	info.si_signo = SIGUSR1;
	info.si_code = SI_QUEUE;
	info.si_value.sival_int = 12;
	CHECK_ERRNO(pidfd_send(fd, SIGUSR2, &info, 0), EINVAL);
	CHECK_EQ(pidfd_send(fd, SIGUSR1, &info, 0), 0);
	CHECK_EQ(sigwaitinfo(&set, &info), SIGUSR1);
	CHECK_EQ(info.si_value.sival_int, 12);
	close(fd);
	by_directory(&set);
	return check_done();
}
