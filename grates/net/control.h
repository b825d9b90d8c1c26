#ifndef CONTROL_H
#define CONTROL_H

#include "net.h"

/* x86-64's struct cmsghdr, which control messages have. */
struct control {
	uint64_t length;
	int32_t level, type;
	uint8_t data[];
};

/* The one that is at an offset; NULL at the end. */
struct control *control_at(const struct msghdr *m, size_t at);
/* The offset behind it. */
size_t control_next(size_t at, const struct control *c);
/* Only what is known to leave the way of packets alone. */
bool control_is_harmless(const struct control *c);
/* The address that a message says it is from: any of this host's, whatever its socket is bound
 * to. */
bool control_source(const struct control *c, struct address *from);

#endif
