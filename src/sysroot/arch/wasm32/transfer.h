/* The calls that move data, in one function each: the result is looked at here and not in __syscall_ret, which would be
 * one more call on the way of every read and write. */
#include <errno.h>
#include <unistd.h>
#include "syscall.h"

#define transferred(call) ({ \
	long moved_ = (call); \
	if ((unsigned long)moved_ > -4096UL) { \
		errno = -moved_; \
		moved_ = -1; \
	} \
	(ssize_t)moved_; })
