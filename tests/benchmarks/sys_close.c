/* close(-1): into the kernel and out with EBADF, the shortest way that looks at a descriptor. */
#include "bench.h"

#include <errno.h>
#include <unistd.h>

#define LOOPS 1000000

int main(void)
{
	long long start = gettimens();

	for (long i = 0; i < LOOPS; i++)
		if (close(-1) != -1 || errno != EBADF)
			bench_die("close(-1)");
	emit_since("Close", -1, LOOPS, start);
	return 0;
}
