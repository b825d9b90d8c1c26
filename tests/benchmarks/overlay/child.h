/* Shared parts of the workloads of child.c. child.py is the same in Python, phase for phase. */
#ifndef CHILD_H
#define CHILD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A message and the errno, and the end: a measurement of something that did not work is none. */
_Noreturn void fail(const char *what);

/* Everything that was seen, as one number. */
extern uint64_t digest;
void seen(const void *bytes, size_t length);
void seen_text(const char *text);
void seen_number(int64_t number);

/* The time since the phase before ended is that of the phase `name`. */
void begin(void);
void phase(const char *name);
void count(const char *name, int64_t number);

/* Paths below the working directory: files and directories, each sorted by name. */
struct paths {
	char **at;
	size_t count;
};
void discover(struct paths *files, struct paths *directories);

void read_path(char **arguments);
void large_edit(char **arguments);
void git_work(char **arguments);

#endif
