/* The directory that a walk is in, and the ways into another one. */
#ifndef LIND_PATH_HERE_H
#define LIND_PATH_HERE_H

#include "walk.h"

struct here {
	const struct lind_view *view; /* may be NULL */
	uint64_t target;
	int at; /* a descriptor of ours; -1 before the walk is anywhere */
	char text[LIND_PATH_MAX]; /* its path; empty for the root */
	bool root_known;
	struct stat root; /* the target's own root directory */
};

/* Each returns 0, or the negative of an errno; two of them return a descriptor. */

/* Takes `fd`, or its error, as the directory we are in. */
int lind_here_take(struct here *h, int fd);
/* Takes a directory that was not reached by a name from where we are. */
int lind_here_elsewhere(struct here *h, int fd);
/* Enters the target's root. */
int lind_here_root(struct here *h);
/* Enters the working directory of whoever `dir` belongs to. */
int lind_here_working(struct here *h, struct lind_arg dir);
/* Goes one directory up, and stays where `..` leads no further. */
int lind_here_up(struct here *h);

/* Opens `name` in the directory we are in, as seen in the view: a descriptor of ours. `bound` says
 * whether the view put it there. */
int lind_here_look(struct here *h, const char *name, int flags, bool *bound);
/* Opens the directory of an argument, which may be another one by its number a moment later. */
int lind_here_argument(struct lind_arg dir);
/* Writes the path of `name` in the directory we are in. */
int lind_here_append(const struct here *h, const char *name, char to[LIND_PATH_MAX]);

#endif
