/* Sockets by address. */
#ifndef NAMESPACE_NET_H
#define NAMESPACE_NET_H

#include "tables.h"

const char *add_address(const char *value);
const char *add_port(const char *value);
int64_t on_address(const struct lind_call *c);
int socket_name(const struct lind_call *c, void *name, uint64_t *length, size_t room);

#endif
