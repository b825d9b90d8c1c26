/* Tests that a process that has waited for a child, or for a stop of one, has had SIGCHLD by then:
 * no later call is interrupted by it. */
#include "check.h"
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { ROUNDS = 100, P_OF_PIDFD = 3 };

static volatile sig_atomic_t seen;

static void note(int sig)
{
	(void)sig;
	seen++;
}

static pid_t child(int sig)
{
	pid_t pid;

	fflush(stdout);
	seen = 0;
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		if (sig)
			raise(sig);
		_exit(7);
	}
	return pid;
}

int main(void)
{
	struct sigaction action = { .sa_handler = note };
	int interrupted = 0, late = 0, unseen = 0, status;

	NEED(sigaction(SIGCHLD, &action, NULL) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t pid = child(0);

		/* The child comes before its signal. */
		if (waitpid(pid, &status, 0) != pid)
			interrupted++;
		late += seen != 1;
	}
	CHECK_EQ(interrupted, 0);
	CHECK_EQ(late, 0);

	for (int i = 0; i < ROUNDS; i++) {
		pid_t pid = child(SIGSTOP);

		interrupted += waitpid(pid, &status, WUNTRACED) != pid;
		late += seen != 1;
		CHECK_EQ(kill(pid, SIGKILL), 0);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	CHECK_EQ(interrupted, 0);
	CHECK_EQ(late, 0);

	for (int i = 0; i < ROUNDS; i++) {
		pid_t pid = child(0);
		int fd = (int)syscall(SYS_pidfd_open, (long)pid, 0L);
		siginfo_t info;

		if (fd < 0)
			check_skip("no pidfd_open");
		while (waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT) < 0 && errno == EINTR)
			;
		unseen += poll(&(struct pollfd){ .fd = fd, .events = POLLIN }, 1, 0) != 1;
		CHECK_EQ(waitpid(pid, &status, 0), pid);
		close(fd);
	}
	CHECK_EQ(unseen, 0);

	/* Where no zombies are wanted there is a signal all the same. */
	action.sa_flags = SA_NOCLDWAIT;
	NEED(sigaction(SIGCHLD, &action, NULL) == 0);
	for (int i = 0; i < ROUNDS; i++) {
		pid_t pid = child(0);

		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		CHECK_EQ(errno, ECHILD);
		late += seen != 1;
	}
	CHECK_EQ(late, 0);
	return check_done();
}
