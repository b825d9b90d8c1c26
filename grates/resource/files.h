/* Open descriptors. */
#ifndef RESOURCE_FILES_H
#define RESOURCE_FILES_H

#include <sys/socket.h>
#include "tables.h"

/* Counts what the first client has. */
void files_begun(struct client *c);
/* Counts what a new client has, of which `reserved` is counted already. */
void files_found(struct client *c, uint64_t highest, uint64_t reserved);
uint64_t files_highest(struct client *c);
/* Numbers that are closed by now count no more, of any client. */
void files_look(void);
/* Reserves a descriptor, or answers as the limit says. 0 or a negative errno. */
int64_t file_reserve(struct client *c, uint64_t n, const char *by);
/* A reserved descriptor has got this number. */
void file_opened(struct client *c, int fd);
void files_leave(struct client *c);
/* A call whose result is a descriptor, which counts; `make` makes it. */
int64_t open_file(const struct lind_call *call, lind_handle_fn *make);
/* Counts descriptors that a message brought, and closes those beyond the limit. */
void files_received(struct client *c, struct msghdr *own);
/* How many descriptors a message sends; room for them, and what came of it. */
uint64_t files_in(const struct msghdr *own);
int64_t files_send(struct client *c, uint64_t n);
void files_sent(struct client *c, uint64_t n, bool done);

/* Has calls that make and close descriptors handled. */
void files_begin(void);

#endif
