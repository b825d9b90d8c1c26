/* posix_spawn of a small program that is cached, and the wait for its end.
 * native: -static
 */
#include "bench.h"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#define LOOPS 2000
#define WARM  20

extern char **environ;

static void run(char *self)
{
	char *args[] = { self, "child", 0 };
	int status;
	pid_t pid;

	if (posix_spawn(&pid, self, 0, 0, args, environ))
		bench_die("posix_spawn");
	if (waitpid(pid, &status, 0) != pid || status != 0)
		bench_die("the child");
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return 0;
	for (int i = 0; i < WARM; i++)
		run(argv[0]);
	long long start = gettimens();

	for (long i = 0; i < LOOPS; i++)
		run(argv[0]);
	emit_since("Spawn", 0, LOOPS, start);
	return 0;
}
