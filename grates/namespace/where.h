/* Where a path leads. */
#ifndef NAMESPACE_WHERE_H
#define NAMESPACE_WHERE_H

#include "tables.h"

struct where {
	char text[PATH_MAX]; /* what the client wrote, or where it leads, for who gets the call */
	char path[PATH_MAX]; /* where it leads; empty if that is not known in words */
	bool inside;
	bool rewritten;  /* `text` differs from the text of the client */
	bool start_only; /* it is the directory argument itself, without a text */
};

const char *add_prefix(const char *value);
int look(const struct lind_call *c, int dir, int path, bool follow, struct where *w);
/* The same for a text that is there already. */
int look_at(const struct lind_call *c, int dir, bool follow, struct where *w);
bool above_a_prefix(const char *path);
bool below_a_prefix(const char *path);

#endif
