/* complains N: that many children end one after the other by a trap, of each of which the runner
 * has something to say. */
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int status;

	for (int n = argc > 1 ? atoi(argv[1]) : 0; n > 0; n--) {
		pid_t child = fork();

		if (child == 0)
			__builtin_trap();
		if (child < 0 || waitpid(child, &status, 0) != child || !WIFSIGNALED(status))
			return 1;
	}
	return 0;
}
