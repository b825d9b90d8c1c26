/* Handlers of many types behind one pointer type, of results and arguments that are not what the
 * call says. */
#include "style.h"

static int one(int x)
{
	return 100 + x;
}
static int wide(uint64_t grate)
{
	return grate == (uint64_t)getpid() ? 201 : -EINVAL;
}
static int none(void)
{
	return 202;
}
static off_t offset(uint64_t grate, ARGS)
{
	return grate ? (off_t)(a1 + a6 + (0 * (a2 + a3 + a4 + a5 + c1 + c2 + c3 + c4 + c5 + c6))) : -1;
}
static long half(uint64_t grate, uint64_t a1, uint64_t c1)
{
	return grate && a1 == 7 && c1 ? 204 : -1;
}
static int64_t failing(uint64_t grate, uint64_t a1)
{
	return grate && a1 ? -EXDEV : 0;
}
static void *pointer(uint64_t grate, ARGS)
{
	return (void *)(uintptr_t)(grate ? a3 + 0 * (a1 + a2 + a4 + a5 + a6 + c1 + c2 + c3 + c4 + c5 + c6) : 0);
}

static void before(uint64_t child, uint64_t grate)
{
	take(child, 2000, grate, one);
	take(child, 2001, grate, wide);
	take(child, 2002, grate, none);
	take(child, 2003, grate, offset);
	take(child, 2004, grate, half);
	take(child, 2005, grate, failing);
	take(child, 2007, grate, pointer);
}

int main(int argc, char **argv)
{
	(void)argc;
	return run_registering_parent(argv + 1, before);
}
