/* brk and sbrk: the end of the data moves both ways; what comes back is zero. */
#include "check.h"

#include <stdint.h>
#include <sys/syscall.h>

/* The call itself: libc's brk() and sbrk() differ between C libraries. */
static uintptr_t brk_call(uintptr_t to)
{
	return (uintptr_t)syscall(SYS_brk, (long)to);
}

int main(void)
{
	uintptr_t start = brk_call(0);
	volatile unsigned char *at = (volatile unsigned char *)start;

	NEED(start != 0);
	CHECK_EQ(brk_call(start + 100000), start + 100000);
	CHECK_EQ(brk_call(0), start + 100000);
	for (int i = 0; i < 100000; i++)
		at[i] = (unsigned char)i;
	CHECK_EQ(at[99999], (unsigned char)99999);
	CHECK_EQ(brk_call(start), start);
	CHECK_EQ(brk_call(start + 100000), start + 100000);
	/* The page that `start` lies in stays; those after it were given back. */
	for (uintptr_t i = (-start & 4095); i < 100000; i++)
		if (at[i]) {
			CHECK_EQ(at[i], 0);
			break;
		}
	/* An impossible request is answered with the current end. */
	CHECK_EQ(brk_call(16), start + 100000);
	CHECK_EQ(brk_call(start), start);
	return check_done();
}
