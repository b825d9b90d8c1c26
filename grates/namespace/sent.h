/* The files that were sent while they were inside, known again by what they are. */
#ifndef NAMESPACE_SENT_H
#define NAMESPACE_SENT_H

#include "tables.h"

struct stat;
int remember(struct lind_arg fd, const struct stat *st);
bool was_sent(struct lind_arg fd, const struct stat *st);
bool anything_sent(void);
/* A socket turns out to be inside: so do its other descriptors in this client. */
void adopt(const struct lind_call *c, int arg);

#endif
