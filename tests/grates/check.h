/* Reports a result that a client of a grate's test did not expect. */
#ifndef CHECK_H
#define CHECK_H

#include <errno.h>
#include <stdio.h>

#define IS(what, wanted) is(#what, (long)(what), (long)(wanted), __LINE__)
#define FAILS(call, with) \
	(errno = 0, is(#call, (long)(call), -1, __LINE__), is(#call " fails with", errno, with, __LINE__))

static int wrong;

static void is(const char *what, long got, long wanted, int line)
{
	if (got != wanted) {
		printf("%d: %s: expected %ld, got %ld (errno %d)\n", line, what, wanted, got, errno);
		wrong = 1;
	}
}

#endif
