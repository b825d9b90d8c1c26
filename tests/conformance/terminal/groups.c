/* setpgid, setsid, getsid and their rules. */
#include "check.h"

#include <signal.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
	int p[2], q[2], status;
	pid_t child, other;
	char byte;

	if (argc > 1) {
		/* The child that has run a program of its own. */
		write(atoi(argv[1]), "x", 1);
		read(atoi(argv[2]), &byte, 1);
		return 0;
	}
	CHECK_ERRNO(setpgid(0, -1), EINVAL);
	CHECK_ERRNO(setpgid(999999, 0), ESRCH);
	CHECK_ERRNO(getpgid(999999), ESRCH);
	CHECK_ERRNO(getsid(999999), ESRCH);
	CHECK_EQ(getpgid(0), getpgrp());
	CHECK_EQ(getpgid(getpid()), getpgrp());
	NEED(pipe(p) == 0 && pipe(q) == 0);
	NEED((child = fork()) >= 0);
	if (!child) {
		read(q[0], &byte, 1);
		_exit(0);
	}
	CHECK_EQ(setpgid(child, child), 0);
	CHECK_EQ(getpgid(child), child);
	NEED((other = fork()) >= 0);
	if (!other) {
		read(q[0], &byte, 1);
		_exit(0);
	}
	CHECK_EQ(setpgid(other, child), 0);
	CHECK_EQ(getpgid(other), child);
	CHECK_ERRNO(setpgid(other, 999999), EPERM);
	CHECK_EQ(getsid(other), getsid(0));
	CHECK_EQ(kill(-child, SIGTERM), 0);
	CHECK_EQ(waitpid(-child, &status, 0) > 0, 1);
	CHECK_EQ(waitpid(-child, &status, 0) > 0, 1);
	CHECK_ERRNO(waitpid(-child, &status, 0), ECHILD);

	NEED((child = fork()) >= 0);
	if (!child) {
		char in[16], out[16];

		snprintf(out, sizeof out, "%d", p[1]);
		snprintf(in, sizeof in, "%d", q[0]);
		execve("/proc/self/exe", (char *[]){ argv[0], out, in, NULL }, environ);
		_exit(127);
	}
	CHECK_EQ(read(p[0], &byte, 1), 1);
	CHECK_ERRNO(setpgid(child, child), EACCES);
	CHECK_EQ(write(q[1], "x", 1), 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);

	NEED((child = fork()) >= 0);
	if (!child) {
		if (setsid() != getpid() || getsid(0) != getpid() || getpgrp() != getpid())
			_exit(1);
		if (setsid() != -1 || errno != EPERM || setpgid(0, 0) != -1 || errno != EPERM)
			_exit(2);
		write(p[1], "x", 1);
		read(q[0], &byte, 1);
		_exit(0);
	}
	CHECK_EQ(read(p[0], &byte, 1), 1);
	CHECK_ERRNO(setpgid(child, 0), EPERM);
	CHECK_EQ(getsid(child), child);
	CHECK_EQ(write(q[1], "x", 1), 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	return check_done();
}
