/* The kernel's clock ticks have 64 bits each. */
#include <sys/times.h>
#include "syscall.h"

clock_t times(struct tms *tms)
{
	long long ticks[4];
	clock_t r = __syscall(SYS_times, ticks);
	if (tms) *tms = (struct tms){ ticks[0], ticks[1], ticks[2], ticks[3] };
	return r;
}
