/* Code that never comes to a place where it would look for signals. Shared with
 * tests/benchmarks/sig_kill.c. */
#ifndef BUSY_H
#define BUSY_H

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

static volatile unsigned spun;

static void spin(void)
{
	for (;;)
		spun++;
}

/* Sets `*once`, if that is not null, when it has copied everything for the first time. */
static void copy_memory(size_t size, volatile char *once)
{
	char *from = calloc(1, size), *to = malloc(size);

	while (from && to) {
		memcpy(to, from, size);
		memmove(to + 1, to, size - 1);
		memset(from, (int)spun, size);
		spun += (unsigned char)to[spun % size];
		if (once)
			*once = 1;
	}
}

static jmp_buf jump;

static void throw_it(unsigned how)
{
	longjmp(jump, how | 1);
}

static void (*volatile thrower)(unsigned) = throw_it;

static void throw(void)
{
	for (;;) {
		if (setjmp(jump))
			spun++;
		else
			thrower(spun);
	}
}

#endif
