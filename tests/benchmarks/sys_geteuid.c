/* geteuid(): a call without arguments. Neither glibc nor musl remembers the answer. */
#include "bench.h"

#include <unistd.h>

#define LOOPS 1000000

int main(void)
{
	volatile uid_t uid = 0;
	long long start = gettimens();

	for (long i = 0; i < LOOPS; i++)
		uid = geteuid();
	emit_since("Geteuid", 0, LOOPS, start);
	(void)uid;
	return 0;
}
