/* How the words of descriptors change while threads do. */
#ifndef NAMESPACE_WORDS_H
#define NAMESPACE_WORDS_H

#include "tables.h"

/* A fork: before it is made, by the thread that makes it; if it fails; and when the child is
 * there, which does not run yet. */
void fds_before_copy(const struct client *from);
void fds_not_copied(void);
void fds_copy(struct client *to, uint64_t cage, const struct client *from);
void fds_forget(struct client *client);

/* Before a call that makes a descriptor outside; and after it: what is at the number is outside,
 * unless it has got another file since. */
void fd_outside(struct client *client, uint64_t fd, uint32_t since);
/* The same of a call that may have more to say, which others wait for. */
void fd_outside_of_several(struct client *client, uint64_t fd, uint32_t since);

/* Before the file at a number goes: nobody may take what comes there for it. One at a time, or
 * they would not know each other's stamps. `mine` is the word then, or 0 if there are no
 * threads. False if a signal comes while another one is at it. */
bool let_go(struct client *client, uint32_t fd, uint32_t *mine);
/* Afterwards, with what the number has now. If it has been given again and marked meanwhile,
 * that stays, and the result is false. */
bool has_let_go(struct client *client, uint32_t fd, uint32_t mine, uint32_t bits);

#endif
