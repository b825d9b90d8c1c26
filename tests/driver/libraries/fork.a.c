#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
static int generation;
static int after(pid_t child)
{
	int status;
	if (child == 0)
		return generation + 1;
	waitpid(child, &status, 0);
	return WEXITSTATUS(status);
}
/* Forks in a frame of the library. */
int forked(int depth)
{
	int sum = 0;
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();
		int got = after(child);
		if (child == 0) {
			generation++;
			_exit(depth ? 10 * got + forked(depth - 1) : got);
		}
		sum += got;
	}
	return sum;
}
