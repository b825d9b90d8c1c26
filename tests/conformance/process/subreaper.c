/* PR_SET_CHILD_SUBREAPER: orphans become children of the nearest ancestor that asked for it, dead
 * ones too. */
#include "../check.h"
#include <signal.h>
#include <sys/prctl.h>
#include "telling.h"

extern char **environ;

static int get(void)
{
	int on = -1;

	CHECK_EQ(prctl(PR_GET_CHILD_SUBREAPER, &on), 0);
	return on;
}

static void flag(void)
{
	int status;
	pid_t pid;

	CHECK_EQ(get(), 0);
	CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 5), 0);
	CHECK_EQ(get(), 1);
	CHECK_ERRNO(prctl(PR_GET_CHILD_SUBREAPER, (int *)8), EFAULT);
	/* A child does not inherit the attribute. */
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0)
		_exit(get());
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
	CHECK_EQ(get(), 0);
}

/* Waits until the parent is another one. */
static pid_t new_parent(pid_t old)
{
	for (int i = 0; getppid() == old && i < 10000; i++)
		usleep(1000);
	return getppid();
}

/* Starts a child that starts `count` children and ends with 7; of those each waits for its new
 * parent, says by its status whether that is `wanted`, and ends. Returns the child's id; those of
 * the others come in `pids`. */
static pid_t orphans(pid_t wanted, pid_t *pids, int count)
{
	int ends[2], status;
	pid_t pid = fork_telling(ends);

	if (pid == 0) {
		pid_t me = getpid();
		for (int i = 0; i < count; i++) {
			pid_t child = fork();
			if (child == 0)
				_exit(new_parent(me) == wanted ? 40 + i : 1);
			tell(ends, child);
		}
		_exit(7);
	}
	for (int i = 0; i < count; i++)
		pids[i] = hear(ends);
	hear_no_more(ends);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 7 << 8);
	return pid;
}

static void living(void)
{
	pid_t pids[3];
	int status;

	CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	orphans(getpid(), pids, 3);
	/* From the moment on in which their parent has ended they are there to wait for. */
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
		CHECK_EQ(status, (40 + i) << 8);
	}
	CHECK_ERRNO(waitpid(-1, NULL, 0), ECHILD);
}

/* A child that had ended before its parent, which did not wait. */
static void zombie(void)
{
	int ends[2], status;
	siginfo_t info;
	sigset_t set;
	pid_t pid, child;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	pid = fork_telling(ends);
	if (pid == 0) {
		child = fork();
		if (child == 0)
			_exit(3);
		if (waitid(P_PID, (id_t)child, &info, WEXITED | WNOWAIT) != 0)
			_exit(1);
		tell(ends, child);
		for (;;)
			pause();
	}
	child = hear(ends);
	CHECK_ERRNO(waitpid(child, &status, WNOHANG), ECHILD);
	CHECK_EQ(kill(pid, SIGKILL), 0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, SIGKILL);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 3 << 8);
	CHECK_EQ(sigwaitinfo(&set, &info), SIGCHLD);
	hear_no_more(ends);
	NEED(sigprocmask(SIG_UNBLOCK, &set, NULL) == 0);
	CHECK_ERRNO(waitpid(-1, NULL, 0), ECHILD);
}

/* A process that ignores SIGCHLD has nobody to wait for. */
static void ignored(void)
{
	pid_t pids[2];

	signal(SIGCHLD, SIG_IGN);
	if (fork() == 0) {
		signal(SIGCHLD, SIG_DFL);
		CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
		orphans(getppid(), pids, 2);
		_exit(0);
	}
	CHECK_ERRNO(waitpid(-1, NULL, 0), ECHILD);
	signal(SIGCHLD, SIG_DFL);
}

/* The nearest one; one that has ended or asked no more does not count. Adopted children go on when
 * it ends. */
static void nearest(void)
{
	int status;
	pid_t pid, me = getpid(), pids[2];

	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
		orphans(getpid(), pids, 2);
		CHECK_EQ(waitpid(pids[0], &status, 0), pids[0]);
		CHECK_EQ(status, 40 << 8);
		CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 0), 0);
		CHECK_EQ(waitpid(pids[1], &status, 0), pids[1]);
		orphans(me, pids, 1);
		CHECK_ERRNO(waitpid(-1, NULL, 0), ECHILD);
		_exit(check_failures ? 1 : 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK(wait(&status) > 0);
	CHECK_EQ(status, 40 << 8);
	CHECK_ERRNO(waitpid(-1, NULL, 0), ECHILD);
}

/* Exec keeps it, a new parent may signal and move its children. */
static void executed(char *self)
{
	char *argv[] = { self, "again", NULL };
	int status;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		execve(self, argv, environ);
		_exit(126);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void group(void)
{
	int ends[2], status;
	pid_t pid = fork_telling(ends), child;

	if (pid == 0) {
		child = fork();
		if (child == 0)
			for (;;)
				pause();
		tell(ends, child);
		_exit(0);
	}
	child = hear(ends);
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(setpgid(child, 0), 0);
	CHECK_EQ(kill(-child, SIGTERM), 0);
	CHECK_EQ(waitpid(-child, &status, 0), child);
	CHECK_EQ(status, SIGTERM);
	hear_no_more(ends);
}

/* Without a subreaper, an orphan's parent is init, also if a process becomes a subreaper later. */
static void nobody(void)
{
	int ends[2];
	pid_t pid, me = getpid(), seen;

	if (get())
		prctl(PR_SET_CHILD_SUBREAPER, 0);
	pid = fork_telling(ends);
	if (pid == 0) {
		pid_t middle = getpid();
		if (fork() == 0) {
			tell(ends, new_parent(middle));
			_exit(0);
		}
		_exit(0);
	}
	CHECK_EQ(waitpid(pid, NULL, 0), pid);
	CHECK_EQ(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
	CHECK_ERRNO(waitpid(-1, NULL, WNOHANG), ECHILD);
	seen = hear(ends);
	/* The first process of a runner stands for init, and may be this one. */
	CHECK(seen != me || me == 1);
	hear_no_more(ends);
	prctl(PR_SET_CHILD_SUBREAPER, 0);
}

int main(int argc, char **argv)
{
	char path[4096];
	ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);

	(void)argv;
	if (argc > 1)
		return get() != 1;
	NEED(length > 0);
	path[length] = 0;
	flag();
	living();
	zombie();
	ignored();
	nearest();
	executed(path);
	group();
	nobody();
	return check_done();
}
