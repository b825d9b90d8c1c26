/* Descriptors of ours that hold what is at a number of a client with threads. */
#ifndef NAMESPACE_HOLD_H
#define NAMESPACE_HOLD_H

#include "tables.h"

int64_t on_clone(const struct lind_call *c);
void threads_end(struct client *client);
/* While they are frozen: whether what is at a number of `cage` is inside, or -EBADF. */
int look_at_number(const struct client *client, struct lind_arg fd);
/* Past the grates inside, by these arguments' files as they are now, if threads may change them. */
int64_t go_past(const struct lind_call *c, unsigned args);
/* A copy of ours of what is at a number, and whether that is inside. 0, or the negative of an
 * errno. */
int hold(struct client *client, struct lind_arg fd, struct lind_arg *held, bool *inside);
void release(struct lind_arg held);

#endif
