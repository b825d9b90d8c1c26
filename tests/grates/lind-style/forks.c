/* Forks, runs itself in the child, waits. With a number, that is what fork must return in the
 * parent. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int status, child, wanted = argc > 1 ? atoi(argv[1]) : 0;

	if (argc > 1 && !strcmp(argv[1], "child"))
		return 7;
	if (execl("/no/such", "x", (char *)0) != -1)
		return 9;
	if (!(child = fork())) {
		execl(argv[0], argv[0], "child", (char *)0);
		_exit(8);
	}
	if (wanted ? child != wanted : child <= getpid())
		return 2;
	if (wait(&status) <= 0 || WEXITSTATUS(status) != 7)
		return 3;
	return wait(&status) == -1 ? 5 : 4;
}
