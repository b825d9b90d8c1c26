/* SIGCHLD, stopping and continuing, waitid, signals from parent to child and back. */
#include "../check.h"
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;
static siginfo_t last;
static volatile sig_atomic_t seen;

static void note(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)context;
	last = *info;
	seen++;
}

static void nothing(int sig)
{
	(void)sig;
}

static pid_t run(char *self, char *what)
{
	char *argv[] = { self, what, 0 };
	posix_spawnattr_t own_group;
	pid_t pid;
	/* Its parent is in another group of the session then: a stop by SIGTSTP is not for orphaned
	 * groups, which ours may be. */
	NEED(posix_spawnattr_init(&own_group) == 0);
	NEED(posix_spawnattr_setflags(&own_group, POSIX_SPAWN_SETPGROUP) == 0);
	NEED(posix_spawn(&pid, self, 0, &own_group, argv, environ) == 0);
	return pid;
}

static int child(const char *what)
{
	sigset_t none;
	sigemptyset(&none);
	switch (*what) {
	case 'e':
		return 7;
	case 'p':
		signal(SIGUSR1, nothing);
		kill(getppid(), SIGUSR2);
		for (;;)
			pause();
	case 's':
		for (volatile long i = 0;; i++)
			;
	case 'k':
		raise(SIGKILL);
		break;
	case 'a':
		abort();
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_sigaction = note, .sa_flags = SA_SIGINFO | SA_RESTART };
	sigset_t block, none;
	siginfo_t info;
	int status;
	pid_t pid;

	if (argc > 1)
		return child(argv[1]);
	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGCHLD);
	sigaddset(&block, SIGUSR2);
	NEED(sigprocmask(SIG_BLOCK, &block, 0) == 0);
	NEED(sigaction(SIGCHLD, &sa, 0) == 0);
	NEED(sigaction(SIGUSR2, &sa, 0) == 0);

	pid = run(argv[0], "e");
	CHECK_ERRNO(sigsuspend(&none), EINTR);
	CHECK_EQ(seen, 1);
	CHECK_EQ(last.si_signo, SIGCHLD);
	CHECK_EQ(last.si_code, CLD_EXITED);
	CHECK_EQ(last.si_status, 7);
	CHECK_EQ(last.si_pid, pid);
	memset(&info, 0, sizeof info);
	CHECK_EQ(waitid(P_PID, pid, &info, WEXITED | WNOWAIT), 0);
	CHECK_EQ(info.si_status, 7);
	CHECK_EQ(kill(pid, SIGTERM), 0);
	CHECK_EQ(waitid(P_ALL, 0, &info, WEXITED), 0);
	CHECK_EQ(info.si_pid, pid);
	CHECK_ERRNO(kill(pid, 0), ESRCH);
	CHECK_ERRNO(waitid(P_ALL, 0, &info, WEXITED), ECHILD);
	CHECK_ERRNO(waitid(P_ALL, 0, &info, 0), EINVAL);

	run(argv[0], "k");
	CHECK_EQ(sigwaitinfo(&block, &info), SIGCHLD);
	CHECK_EQ(info.si_code, CLD_KILLED);
	CHECK_EQ(info.si_status, SIGKILL);
	CHECK(wait(&status) > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	run(argv[0], "a");
	CHECK(wait(&status) > 0 && WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	CHECK_EQ(sigwaitinfo(&block, &info), SIGCHLD);

	/* One process that waits, one that computes. */
	for (int computes = 0; computes < 2; computes++) {
		pid = run(argv[0], computes ? "s" : "p");
		if (!computes) {
			CHECK_EQ(sigwaitinfo(&block, &info), SIGUSR2);
			CHECK_EQ(info.si_pid, pid);
			CHECK_EQ(kill(pid, SIGUSR1), 0);
		}
		CHECK_EQ(waitpid(pid, &status, WNOHANG | WUNTRACED), 0);
		CHECK_EQ(kill(pid, SIGSTOP), 0);
		CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
		CHECK(WIFSTOPPED(status) && WSTOPSIG(status) == SIGSTOP);
		CHECK_EQ(waitpid(pid, &status, WNOHANG | WUNTRACED), 0);
		CHECK_EQ(sigwaitinfo(&block, &info), SIGCHLD);
		CHECK_EQ(info.si_code, CLD_STOPPED);
		CHECK_EQ(info.si_status, SIGSTOP);
		CHECK_EQ(kill(pid, SIGCONT), 0);
		CHECK_EQ(waitpid(pid, &status, WCONTINUED), pid);
		CHECK(WIFCONTINUED(status));
		CHECK_EQ(sigwaitinfo(&block, &info), SIGCHLD);
		CHECK_EQ(info.si_code, CLD_CONTINUED);
		CHECK_EQ(kill(pid, SIGTSTP), 0);
		CHECK_EQ(waitid(P_PID, pid, &info, WSTOPPED), 0);
		CHECK_EQ(info.si_status, SIGTSTP);
		/* A stopped process ends all the same. */
		CHECK_EQ(kill(pid, SIGKILL), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		while (sigtimedwait(&block, &info, &(struct timespec){ 0 }) > 0)
			;
	}

	/* The end comes just when it has begun to stand still. */
	for (int i = 0; i < 50; i++) {
		pid = run(argv[0], "s");
		CHECK_EQ(kill(pid, SIGSTOP), 0);
		CHECK_EQ(waitpid(pid, &status, WUNTRACED), pid);
		CHECK(WIFSTOPPED(status));
		CHECK_EQ(kill(pid, SIGKILL), 0);
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	}

	/* No zombies. */
	sa.sa_flags |= SA_NOCLDWAIT;
	NEED(sigaction(SIGCHLD, &sa, 0) == 0);
	pid = run(argv[0], "e");
	CHECK_ERRNO(waitpid(pid, &status, 0), ECHILD);
	signal(SIGCHLD, SIG_IGN);
	pid = run(argv[0], "e");
	CHECK_ERRNO(waitpid(pid, &status, 0), ECHILD);
	return check_done();
}
