/* many_compile N: as many cages run /slow0.wasm, /slow1.wasm and so on, and the first ends when it has read all of its input. */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

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
		;
	return 0;
}
