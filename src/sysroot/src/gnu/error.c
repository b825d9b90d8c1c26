#include <error.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char *__progname_full;

/* A program may define them. */
__attribute__((__weak__)) void (*error_print_progname)(void);
__attribute__((__weak__)) unsigned int error_message_count;
__attribute__((__weak__)) int error_one_per_line;

static void say(int status, int errnum, const char *file, unsigned line, const char *format, va_list arguments)
{
	fflush(stdout);
	flockfile(stderr);
	if (error_print_progname) error_print_progname();
	else fprintf(stderr, file ? "%s:" : "%s: ", __progname_full);
	if (file) fprintf(stderr, "%s:%u: ", file, line);
	vfprintf(stderr, format, arguments);
	error_message_count++;
	if (errnum) fprintf(stderr, ": %s", strerror(errnum));
	putc('\n', stderr);
	funlockfile(stderr);
	if (status) exit(status);
}

void error(int status, int errnum, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	say(status, errnum, 0, 0, format, arguments);
	va_end(arguments);
}

void error_at_line(int status, int errnum, const char *file, unsigned line, const char *format, ...)
{
	static const char *last_file;
	static unsigned last_line;
	va_list arguments;

	if (error_one_per_line && line == last_line && file && last_file && !strcmp(file, last_file)) return;
	last_file = file;
	last_line = line;
	va_start(arguments, format);
	say(status, errnum, file, line, format, arguments);
	va_end(arguments);
}
