/* prctl: the name of the program, and what does not exist. */
#include "check.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* The signal for when the parent ends, which fork does not hand on. */
static void parent_ends(void)
{
	int report[2], ready[2], seen[2] = { 0, 0 }, signal = -1, status = 0;
	sigset_t set;
	pid_t pid;

	CHECK_ERRNO(prctl(PR_SET_PDEATHSIG, 65), EINVAL);
	CHECK_EQ(prctl(PR_SET_PDEATHSIG, SIGUSR1), 0);
	CHECK_EQ(prctl(PR_GET_PDEATHSIG, &signal), 0);
	CHECK_EQ(signal, SIGUSR1);
	CHECK_ERRNO(prctl(PR_GET_PDEATHSIG, (int *)8), EFAULT);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0 && pipe(report) == 0 && pipe(ready) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		char byte;
		pid_t parent = getpid(), child = fork();

		if (child == 0) {
			siginfo_t info;

			prctl(PR_GET_PDEATHSIG, &seen[0]);
			prctl(PR_SET_PDEATHSIG, SIGUSR2);
			if (write(ready[1], "r", 1) != 1 || sigwaitinfo(&set, &info) != SIGUSR2)
				_exit(1);
			seen[1] = info.si_code == SI_USER && info.si_pid == parent && getppid() != parent;
			_exit(write(report[1], seen, sizeof seen) != sizeof seen);
		}
		_exit(child < 0 || read(ready[0], &byte, 1) != 1);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(read(report[0], seen, sizeof seen), sizeof seen);
	CHECK_EQ(seen[0], 0);
	CHECK_EQ(seen[1], 1);
	CHECK_EQ(prctl(PR_SET_PDEATHSIG, 0), 0);
}

/* Timer slack: a child begins with what its parent has, and that is what 0 sets it to. */
static void slack(void)
{
	int status = -1;
	int before = prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0);
	pid_t pid;

	CHECK(before > 0);
	CHECK_EQ(prctl(PR_SET_TIMERSLACK, 70000, 0, 0, 0), 0);
	NEED((pid = fork()) >= 0);
	if (pid == 0) {
		CHECK_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 70000);
		CHECK_EQ(prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0), 0);
		CHECK_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 1);
		CHECK_EQ(prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0), 0);
		CHECK_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), 70000);
		fflush(stdout);
		_exit(check_failures != 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(prctl(PR_SET_TIMERSLACK, 0, 0, 0, 0), 0);
	CHECK_EQ(prctl(PR_GET_TIMERSLACK, 0, 0, 0, 0), before);
}

int main(void)
{
	char name[18] = { 0 };

	memset(name, '#', 17);
	CHECK_EQ(prctl(PR_SET_NAME, "short"), 0);
	CHECK_EQ(prctl(PR_GET_NAME, name), 0);
	CHECK_STR(name, "short");
	CHECK_EQ(name[16], '#');
	/* 15 characters are kept. */
	CHECK_EQ(prctl(PR_SET_NAME, "0123456789abcdefghij"), 0);
	CHECK_EQ(prctl(PR_GET_NAME, name), 0);
	CHECK_STR(name, "0123456789abcde");
	CHECK_EQ(name[16], '#');
	CHECK_ERRNO(prctl(123456), EINVAL);
	parent_ends();
	/* Questions that everybody may ask. */
	CHECK(prctl(PR_GET_SECCOMP) >= 0);
	CHECK(prctl(PR_CAPBSET_READ, 0UL) >= 0);
	CHECK_ERRNO(prctl(PR_CAPBSET_READ, 1000UL), EINVAL);
	slack();
	return check_done();
}
