/*
 * lind-why [-a]: says what the sandbox denied last, and what would allow it; with -a the last few.
 * The kernel of cages keeps the texts, in which names of files and hosts are escaped already.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FILE_NAME "/proc/lind/denials"
#define MOST      (128 << 10)

/* The last of the texts, between which there are empty lines. */
static const char *last_of(const char *texts)
{
	const char *last = texts, *next = texts;

	while ((next = strstr(next, "\n\n"))) {
		next += 2;
		if (*next)
			last = next;
	}
	return last;
}

int main(int argc, char **argv)
{
	static char texts[MOST];
	int all = argc == 2 && !strcmp(argv[1], "-a");
	FILE *file;

	if (argc != 1 + all) {
		fputs("usage: lind-why [-a]\n", stderr);
		return 2;
	}
	if (!(file = fopen(FILE_NAME, "re"))) {
		fprintf(stderr, "lind-why: cannot open %s: %s; this is no sandbox of lind-boot\n", FILE_NAME,
		    strerror(errno));
		return 1;
	}
	texts[fread(texts, 1, sizeof texts - 1, file)] = 0;
	if (ferror(file)) {
		fprintf(stderr, "lind-why: cannot read %s: %s\n", FILE_NAME, strerror(errno));
		return 1;
	}
	fclose(file);
	if (!*texts) {
		fputs("nothing was denied\n", stdout);
		return 1;
	}
	return fputs(all ? texts : last_of(texts), stdout) < 0;
}
