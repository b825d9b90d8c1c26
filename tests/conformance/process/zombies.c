/* A process that has ended is in its group and session, and can be asked about, until it is waited
 * for. */
#include "check.h"
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

static pid_t zombie(void)
{
	siginfo_t info;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0)
		_exit(3);
	CHECK_EQ(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	return pid;
}

/* The calls of a shell for `true | sleep 1`. */
static void joined(void)
{
	pid_t first = zombie(), second;
	int status;

	CHECK_EQ(getpgid(first), getpgrp());
	CHECK_EQ(getsid(first), getsid(0));
	CHECK_EQ(setpgid(first, first), 0);
	CHECK_EQ(getpgid(first), first);
	second = fork();
	NEED(second >= 0);
	if (second == 0)
		_exit(setpgid(0, first) || getpgrp() != first);
	CHECK_EQ(setpgid(second, first), 0);
	CHECK_EQ(waitpid(second, &status, 0), second);
	CHECK_EQ(status, 0);
	CHECK_EQ(kill(-first, 0), 0);
	CHECK_EQ(kill(-first, SIGTERM), 0);
	CHECK_EQ(waitpid(-first, &status, WNOHANG), first);
	CHECK_EQ(WEXITSTATUS(status), 3);
	CHECK_ERRNO(waitpid(-first, &status, WNOHANG), ECHILD);
	CHECK_ERRNO(kill(-first, 0), ESRCH);
	CHECK_ERRNO(getpgid(first), ESRCH);
	CHECK_ERRNO(setpgid(0, first), EPERM);
}

static void in_proc(pid_t pid, const char *name, int there)
{
	char path[64], text[100];
	int fd;

	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	if (!there) {
		CHECK_ERRNO(readlink(path, text, sizeof text), ENOENT);
		return;
	}
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	CHECK_EQ(read(fd, text, sizeof text), 0);
	close(fd);
}

static void asked(void)
{
	pid_t pid = zombie();

	in_proc(pid, "exe", 0);
	in_proc(pid, "cwd", 0);
	in_proc(pid, "root", 0);
	in_proc(pid, "maps", 1);
	in_proc(pid, "cmdline", 1);

	CHECK_EQ(kill(pid, 0), 0);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	errno = 0;
	CHECK(getpriority(PRIO_PROCESS, (id_t)pid) != -1 || errno == 0);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_ERRNO(getpriority(PRIO_PROCESS, (id_t)pid), ESRCH);
}

/* It may be put in front of a terminal. */
static void in_front(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY), terminal;
	const char *name;
	pid_t first;

	NEED(master >= 0 && grantpt(master) == 0 && unlockpt(master) == 0);
	NEED((name = ptsname(master)) != NULL);
	NEED(setsid() == getpid());
	NEED((terminal = open(name, O_RDWR)) >= 0);
	first = zombie();
	CHECK_EQ(setpgid(first, first), 0);
	signal(SIGTTOU, SIG_IGN);
	CHECK_EQ(tcsetpgrp(terminal, first), 0);
	CHECK_EQ(tcgetpgrp(terminal), first);
	CHECK_EQ(waitpid(first, NULL, 0), first);
	CHECK_ERRNO(tcsetpgrp(terminal, first), ESRCH);
	CHECK_EQ(tcsetpgrp(terminal, getpgrp()), 0);
}

int main(void)
{
	pid_t pid;
	int status;

	joined();
	asked();
	fflush(stdout);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		signal(SIGHUP, SIG_IGN);
		in_front();
		fflush(stdout);
		_exit(check_failures != 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	return check_done();
}
