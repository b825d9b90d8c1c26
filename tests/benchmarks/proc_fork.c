/* fork, the child's _exit and the wait for it; with a program run in the child; and with 100 MB of
 * touched memory. The parameter is the memory in MiB. native: -static
 */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB 100

extern char **environ;

static void child_of(char *program)
{
	char *args[] = { program, "child", 0 };
	int status;
	pid_t pid = fork();

	if (pid < 0 && errno == ENOSYS)
		bench_skip("fork: Function not implemented");
	if (pid < 0)
		bench_die("fork");
	if (pid == 0) {
		if (program)
			execve(program, args, environ);
		_exit(program != 0);
	}
	if (waitpid(pid, &status, 0) != pid || status != 0)
		bench_die("the child");
}

static void measure(const char *test, long param, char *program, long loops)
{
	for (long i = 0; i < loops / 20; i++)
		child_of(program);
	long long start = gettimens();

	for (long i = 0; i < loops; i++)
		child_of(program);
	emit_since(test, param, loops, start);
}

int main(int argc, char **argv)
{
	/* Volatile: memory that nobody reads is none to the compiler. */
	volatile char *memory;
	size_t size = (size_t)MIB << 20;

	if (argc > 1)
		return 0;
	measure("Fork", 0, 0, 2000);
	measure("Fork+exec", 0, argv[0], 2000);
	memory = malloc(size);
	if (!memory)
		bench_die("malloc");
	for (size_t at = 0; at < size; at++)
		memory[at] = 1;
	measure("Fork", MIB, 0, 20);
	free((void *)memory);
	return 0;
}
