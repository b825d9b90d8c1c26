/* A program to run in the foreground of a terminal: it says who it is, then repeats lines in
 * capitals until the end of the file. */
#include <ctype.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

static volatile sig_atomic_t resized;

static void note(int sig)
{
	(void)sig;
	resized = 1;
}

int main(int argc, char **argv)
{
	char line[200];
	struct winsize size;

	if (argc > 1 && strcmp(argv[1], "spin") == 0) {
		puts("spinning");
		fflush(stdout);
		for (volatile long i = 0;; i++)
			;
	}
	signal(SIGWINCH, note);
	puts("typist ready");
	fflush(stdout);
	if (!isatty(1))
		fputs("typist ready\n", stderr);
	while (fgets(line, sizeof line, stdin)) {
		for (char *c = line; *c; c++)
			*c = (char)toupper((unsigned char)*c);
		if (ioctl(0, TIOCGWINSZ, &size) == 0)
			printf("%d rows, %s: %s", size.ws_row, resized ? "resized" : "as ever", line);
		fflush(stdout);
	}
	puts("typist done");
	return 0;
}
