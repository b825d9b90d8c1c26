/* Descriptors: which are inside, and calls that take or make them. */
#ifndef NAMESPACE_FDS_H
#define NAMESPACE_FDS_H

#include "tables.h"

const char *add_start_fds(const char *value);
void mark_start_fds(struct client *client);
void fds_init(struct client *client);

int64_t on_enter(const struct lind_call *c);
int64_t on_fd(const struct lind_call *c);
int64_t on_fds(const struct lind_call *c);
int64_t on_accept(const struct lind_call *c);
int64_t on_made(const struct lind_call *c);
int64_t on_pair(const struct lind_call *c);
int64_t on_close(const struct lind_call *c);
int64_t on_close_range(const struct lind_call *c);
int64_t on_dup(const struct lind_call *c);
int64_t on_dup2(const struct lind_call *c);
int64_t on_fcntl(const struct lind_call *c);
int64_t on_poll(const struct lind_call *c);
int64_t on_select(const struct lind_call *c);
int64_t on_mmap(const struct lind_call *c);
int64_t on_memory(const struct lind_call *c);
int64_t on_control(const struct lind_call *c);
int64_t on_control_past(const struct lind_call *c);

#endif
