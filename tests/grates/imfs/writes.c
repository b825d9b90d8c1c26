/* Writes a line into a file. */
#include <stdio.h>

int main(int argc, char **argv)
{
	FILE *file = argc == 3 ? fopen(argv[1], "w") : NULL;

	return !file || fprintf(file, "%s\n", argv[2]) < 0 || fclose(file);
}
