/* Opens each of the files for writing, and prints what came of it. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		puts(open(argv[i], O_WRONLY | O_CREAT, 0600) < 0 ? strerror(errno) : "done");
	return 0;
}
