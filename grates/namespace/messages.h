/* Messages, and descriptors in them. */
#ifndef NAMESPACE_MESSAGES_H
#define NAMESPACE_MESSAGES_H

#include "tables.h"

int64_t on_send(const struct lind_call *c);
int64_t on_send_many(const struct lind_call *c);
int64_t on_receive(const struct lind_call *c);
int64_t on_receive_many(const struct lind_call *c);

#endif
