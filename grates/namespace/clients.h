/* The state of each client. */
#ifndef NAMESPACE_CLIENTS_H
#define NAMESPACE_CLIENTS_H

#include "tables.h"

extern const struct lind_lifecycle lifecycle;
void client_entered(void *client, uint64_t cage);

#endif
