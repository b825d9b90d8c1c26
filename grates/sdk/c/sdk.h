/* Between the SDK's own files. */
#ifndef LIND_SDK_H
#define LIND_SDK_H

#include <lind/grate.h>

/* How many handlers lind_watch_clients may add. */
#define LIND_WATCHED 4

/* The call that this thread is serving. A thread serves one at a time: another handler entered meanwhile has another thread. */
extern _Thread_local const struct lind_call *lind_serving_;

void lind_set_name(const char *argv0);
void lind_watch_clients(struct lind_spawn_handler *table, size_t *count);

/* Around a call that makes a child. `parent` is NULL for the grate's own first program; `child`
 * is what the call returned. */
void lind_birth_begins(void);
void lind_birth_ends(const uint64_t *parent, int64_t child, int spawned);

/* Starts the next program with these handlers and waits for it: its status, or -126 or -127 if it does not start. */
int lind_start_and_wait(const char *path, char **argv, const struct lind_spawn_handler *table, size_t count);

void lind_ended(int status);

#endif
