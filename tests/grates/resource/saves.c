/* Writes a file and then works without end. */
#include <stdio.h>

int main(void)
{
	FILE *file = fopen("/x", "w");

	if (!file || fputs("work\n", file) < 0 || fclose(file))
		return 1;
	for (volatile unsigned i = 0;; i++)
		;
}
