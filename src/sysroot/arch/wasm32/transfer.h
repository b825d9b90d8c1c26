/* The calls that move data, in one function each: the result is checked here and not in
 * __syscall_ret, which would be one more call in every read and write. */
#include <errno.h>
#include <unistd.h>
#include "syscall.h"

/* Whether the program has pthread_cancel. */
extern hidden const int __lind_cancels;

/* A cancellation point in programs that cancel, and without a call of its own in others. */
#define interruptible(...) (__lind_cancels ? __syscall_cp(__VA_ARGS__) : __syscall(__VA_ARGS__))

#define transferred(call) ({ \
	long moved_ = (call); \
	if ((unsigned long)moved_ > -4096UL) { \
		errno = -moved_; \
		moved_ = -1; \
	} \
	(ssize_t)moved_; })
