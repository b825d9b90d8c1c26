/* Calls under way that make descriptors or let go of numbers. */
#ifndef NAMESPACE_CALLS_H
#define NAMESPACE_CALLS_H

#include "tables.h"

void calls_ended(struct client *client); /* all its threads have ended, or all but one */
void making_begins(struct client *client);
void waiting_begins(struct client *client); /* the same, of a call that may wait for somebody else */
void making_ends(struct client *client);
void moving_begins(struct client *client);
void moving_ends(struct client *client);
/* A call that lets go of numbers of `client`, which may be NULL. It waits while they are frozen:
 * false if a signal comes meanwhile. */
bool letting_begins(struct client *client);
void letting_ends(struct client *client);
/* Nothing is let go of until fds_thaw: 0, or -EINTR if a signal comes while somebody is at it. */
int fds_freeze(struct client *client);
void fds_thaw(struct client *client);
/* Waits until those who may make a descriptor inside have ended, but for the calling thread.
 * Whether they have. */
bool others_ended(struct client *client);
/* Of the calling thread's call nothing is left that may make one: two that doubt do not wait for
 * each other. */
void only_doubts(struct client *client);
void wait_a_moment(int round);
/* The same, of a call that may wait for as long as others are at it: false when a signal is to
 * be acted on. */
bool wait_for_others(const struct client *client, int round);
/* How many are counted there, but for the calling thread's. */
unsigned others(const atomic_uint *count);

#endif
