/* many_compile N [PROGRAM]: as many cages run /slow0.wasm, /slow1.wasm and so on, and the first
 * runs PROGRAM for each byte of its input, and ends with it. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void run(char *path)
{
	pid_t child = fork();

	if (!child) {
		execv(path, (char *[]){ path, NULL });
		_exit(9);
	}
	waitpid(child, NULL, 0);
	putchar('.');
	fflush(stdout);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? atoi(argv[1]) : 0;
	char byte;

	for (int i = 0; i < count; i++) {
		char path[32];

		snprintf(path, sizeof path, "/slow%d.wasm", i);
		if (!fork()) {
			execv(path, (char *[]){ path, NULL });
			_exit(9);
		}
	}
	while (read(0, &byte, 1) > 0)
		if (argc > 2)
			run(argv[2]);
	return 0;
}
