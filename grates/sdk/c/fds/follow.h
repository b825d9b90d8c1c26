/* Between fds.c and rights.c: one client's descriptors, by its calls. */
#ifndef LIND_FOLLOW_H
#define LIND_FOLLOW_H

#include "fdtable.h"
#include "../core/sdk.h"

/* The table of a client; NULL for cages that are none. */
struct fd_table *fd_table_of(uint64_t cage);

/* Returns the entry, after a look at the file if there is doubt. The state has a reference for
 * the caller. */
struct fd_entry fd_look(uint64_t cage, struct fd_table *t, uint32_t fd);

/* Which file is at `fd`: for a state. 0 or a negative errno. */
int fd_identity(uint64_t cage, uint32_t fd, uint64_t *dev, uint64_t *ino);

/* The grate's own handlers for the calls of messages. */
extern lind_handle_fn *own_sendmsg, *own_recvmsg;

lind_handle_fn fds_sendmsg, fds_recvmsg, fds_sendmmsg, fds_recvmmsg;

extern struct lind_fd_state *(*fd_stricter)(struct lind_fd_state *a, struct lind_fd_state *b);

#endif
