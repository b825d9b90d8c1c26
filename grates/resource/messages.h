/* Messages: what a call carries in several parts. */
#ifndef RESOURCE_MESSAGES_H
#define RESOURCE_MESSAGES_H

#include "tables.h"

int64_t on_message(const struct lind_call *call), on_messages(const struct lind_call *call),
    on_msgsnd(const struct lind_call *call), on_msgrcv(const struct lind_call *call),
    on_mq_receive(const struct lind_call *call);

#endif
