/* getpid through syscall(2): C libraries have cached getpid() before and may again. */
#include "bench.h"

#include <sys/syscall.h>
#include <unistd.h>

#define LOOPS 1000000

int main(void)
{
	volatile long pid = 0;
	long long start = gettimens();

	for (long i = 0; i < LOOPS; i++)
		pid = syscall(SYS_getpid);
	emit_since("Getpid", 0, LOOPS, start);
	(void)pid;
	return 0;
}
