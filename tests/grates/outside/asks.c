/* Opens the files that options of grates name, as a program that is not a grate may try; and writes
 * at places where a grate might be looked for. */
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define HOST_FILE 1011

int main(int argc, char **argv)
{
	int given = 0;

	for (long number = 0; number < 16; number++)
		given += syscall(HOST_FILE, number) >= 0 || errno != EPERM;
	printf("given %d\n", given);
	for (int i = 1; i < argc; i++) {
		FILE *f = fopen(argv[i], "w");

		printf("%s: %s\n", argv[i],
		    f && fputs("default = \"allow\"\n", f) >= 0 && !fclose(f) ? "written" : "not written");
	}
	return 0;
}
