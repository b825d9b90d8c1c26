/* Which calls are looked at, and by which handler. */
#ifndef NAMESPACE_CHOOSE_H
#define NAMESPACE_CHOOSE_H

#include "tables.h"

/* Whether calls are listed. */
extern bool by_call;
const char *add_calls(const char *value);
const char *add_calls_file(const char *value);
lind_handle_fn *choose(uint32_t nr);
/* For --explain. */
const char *when(uint32_t nr, lind_handle_fn *handle);
void fds_route(struct client *client, uint64_t cage);

#endif
