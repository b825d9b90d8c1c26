/*
 * A filter before a handler. getpriority(which, who): which 1 is answered by the filter with twice
 * who, 2 goes on, 3 is for the handler, 4 faults, and 5 takes for ever. getpgrp says how often the
 * handler was entered since it said so last; getsid(1) switches the filter off, getsid(2) ends the
 * grate. The handler decides the same as the filter.
 */
#include <errno.h>
#include <lind/grate.h>
#include <stdatomic.h>
#include <unistd.h>

LIND_HANDLE(answers, getpgrp);
LIND_HANDLE(answers, getsid);

static _Atomic int entered, off;

static int64_t on_getpriority(const struct lind_call *c)
{
	entered++;
	if (c->args[0].value == 2)
		return lind_pass(c);
	return c->args[0].value == 1 ? 2 * (int64_t)c->args[1].value : -EXFULL;
}
LIND_HANDLE(answers, getpriority, on_getpriority);

/* Loads that cannot be moved out of the way. */
static inline uint64_t at(uint64_t address)
{
	return *(const volatile uint64_t *)(uintptr_t)address;
}

LIND_FILTER(on_getpriority)
{
	if (off || nr != SYS_getpriority)
		return LIND_ASK;
	switch (a0) {
	case 1:
		return 2 * (int64_t)a1;
	case 2:
		return LIND_PASS;
	case 4:
		return (int64_t)at(a1);
	case 5:
		while (!off)
			;
	}
	return LIND_ASK;
}

static int64_t on_getpgrp(const struct lind_call *cx)
{
	(void)cx;
	return atomic_exchange(&entered, 0);
}

static int64_t on_getsid(const struct lind_call *cx, pid_t what)
{
	(void)cx;
	if (what == 2)
		_exit(0);
	return off = what;
}

int main(int argc, char **argv)
{
	return lind_grate_main(argc, argv);
}
