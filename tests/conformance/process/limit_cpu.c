/* RLIMIT_CPU: SIGXCPU at the soft limit and each second from there on, SIGKILL at the hard one;
 * inherited, each process with its own time. */
#include "check.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static volatile sig_atomic_t times;

static void note(int sig)
{
	(void)sig;
	times++;
}

static _Noreturn void spin(int signals)
{
	volatile unsigned long turns = 0;

	while (times < signals || signals == 0)
		turns++;
	_exit(7);
}

static void limit(rlim_t soft, rlim_t hard)
{
	struct rlimit limit = { soft, hard }, now;

	CHECK_EQ(setrlimit(RLIMIT_CPU, &limit), 0);
	CHECK_EQ(getrlimit(RLIMIT_CPU, &now), 0);
	CHECK_EQ(now.rlim_max, hard);
}

/* At the soft limit, which a parent has set. */
static _Noreturn void inherits(void)
{
	int status;
	pid_t pid;

	limit(1, 100);
	pid = fork();
	if (pid == 0)
		spin(0);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU);
	_exit(check_failures != 0);
}

static _Noreturn void handles(void)
{
	signal(SIGXCPU, note);
	limit(1, 3);
	spin(2);
}

static _Noreturn void exceeds(void)
{
	signal(SIGXCPU, SIG_IGN);
	limit(1, 1);
	spin(0);
}

int main(void)
{
	void (*const cases[])(void) = { inherits, handles, exceeds };
	const int want[] = { 0, 7 << 8, SIGKILL };
	struct rlimit wrong = { 2, 1 };
	pid_t pids[3];
	int status;

	CHECK_ERRNO(setrlimit(RLIMIT_CPU, &wrong), EINVAL);
	fflush(stdout);
	for (int i = 0; i < 3; i++) {
		pids[i] = fork();
		NEED(pids[i] >= 0);
		if (pids[i] == 0)
			cases[i]();
	}
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(waitpid(pids[i], &status, 0), pids[i]);
		CHECK_EQ(status & 0xff7f, want[i]);
	}
	return check_done();
}
