/* --learn, between noting what is done (learn.c), saying it in patterns (vary.c) and writing it
 * (learned.c). */
#ifndef LEARN_H
#define LEARN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "seccomp.h"

/* So many values of an argument, and so many combinations of values of a call, are few. */
#define FEW_VALUES 16
#define FEW_GROUPS 32

/* Values of one argument; more than there is room for are any. */
struct set {
	unsigned count;
	uint32_t values[FEW_VALUES];
};

/* The calls with the same values. */
struct group {
	struct set args[6];
	void *things;   /* paths or addresses: a tree of strings, as of tsearch */
	bool anything;   /* something that no pattern says */
};

/* The uses of one call. If there are too many groups, they are joined to one. */
struct learned {
	bool made, looks, joined;
	unsigned count;
	struct group groups[FEW_GROUPS];
};

/* Whether an argument is one of few: a selector, flags, a mode, and not a size, a number or an
 * address. */
bool is_choice(const struct lind_syscall *row, int at);
void add_value(struct set *s, uint32_t value);

/* vary.c: names that will be others in the next run. Called under the lock of learn.c. */
void name_made(const char *path);
/* A name that was made without having to be new. */
void name_came(const char *path);
void name_removed(const char *path);
void free_port_bound(void);

/* A sorted list of patterns for what is in a tree of things. */
struct patterns_found {
	char **list;
	size_t count;
};
struct patterns_found patterns_for(void *things);

/* Trees of strings. */
void tree_add(void **tree, const char *text);
bool tree_has(void *const *tree, const char *text);
size_t tree_list(void *tree, char ***list);

/* noted.c: closes the descriptor; the path is for messages. */
void write_lists(int fd, const char *path);

/* learned.c */
void write_policy(
    struct learned *const *of, int fd, const char *path); /* the path is for messages; closes the descriptor */

#endif
