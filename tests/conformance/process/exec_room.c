/* How much a program may be given to begin with: a quarter of the stack's limit, at least 128 KiB,
 * and 6 MiB at most. */
#include "../check.h"
#include <sys/resource.h>
#include <sys/wait.h>

#define PIECE 100000

/* Runs itself with so many arguments of PIECE bytes: whether it began, or the error. */
static int runs(char *self, int pieces, rlim_t stack)
{
	static char piece[PIECE];
	char *argv[80] = { self, "begun" };
	int status = -1;
	pid_t pid;

	memset(piece, 'a', PIECE - 1);
	for (int i = 0; i < pieces; i++)
		argv[2 + i] = piece;
	NEED((pid = fork()) >= 0);
	if (pid == 0) {
		if (stack && setrlimit(RLIMIT_STACK, &(struct rlimit){ stack, RLIM_INFINITY }) &&
		    setrlimit(RLIMIT_STACK, &(struct rlimit){ stack, stack }))
			_exit(254);
		execv(self, argv);
		_exit(errno);
	}
	NEED(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return 0;
	NEED(setrlimit(RLIMIT_STACK, &(struct rlimit){ 8 << 20, 8 << 20 }) == 0 || errno == EPERM);
	CHECK_EQ(runs(argv[0], 1, 0), 0);
	CHECK_EQ(runs(argv[0], 20, 0), 0);
	CHECK_EQ(runs(argv[0], 21, 0), E2BIG);
	CHECK_EQ(runs(argv[0], 9, 4 << 20), 0);
	CHECK_EQ(runs(argv[0], 11, 4 << 20), E2BIG);
	CHECK_EQ(runs(argv[0], 1, 256 << 10), 0);
	CHECK_EQ(runs(argv[0], 2, 256 << 10), E2BIG);
	return check_done();
}
