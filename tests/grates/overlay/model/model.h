/* Shared parts of the model test; model.c describes it. */
#ifndef MODEL_H
#define MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Times that operations set are before this, and so are those of the tree at the start: a later one
 * is the clock's. */
#define PAST 1000000000

extern uint32_t largest; /* how far into a file operations go */
extern bool users;  /* operations are also made as an ordinary user */

void seed_with(uint64_t from);
uint32_t any(uint32_t n); /* less than n */

/* A line for the call that was made, unless `quiet`. */
extern bool quiet;
extern long operation_number;

/* After each call that may have changed the tree. */
void changed(void);

void one_operation(void);
void close_all(void);
void be_root(void);

/* The whole tree below the working directory: a line for each name, if there is a file for them;
 * returns a hash of these lines. `numbers`: with inode numbers. */
uint64_t whole_tree(FILE *to, bool numbers);
/* Of a time, what both sides must agree on. */
const char *time_text(int64_t seconds, long nanoseconds, char text[40]);
uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t length);

/* Names of a directory, sorted, without . and ..; -1 and errno if it cannot be read. */
#define MANY 1000
int names_of(int fd, char *names[MANY]);

#endif
