/*
 * clamp_grate PREFIX GRATE... PROGRAM: the first grate that follows sees the opening of files below
 * PREFIX and of no others. Its handler for open is registered under a number that nobody else uses,
 * in this grate's own table; our handler chooses.
 */
#include "style.h"

#define ALTERNATE 3000

static const char *prefix;
static uint64_t inner;

HANDLER(on_open)
{
	char path[256] = "";

	copy_data_between_cages(grate, c1, a1, c1, (uint64_t)(uintptr_t)path, grate, sizeof path, 1);
	if (!strncmp(path, prefix, strlen(prefix)))
		return make_threei_call(ALTERNATE, 0, grate, c1, PASS, 0);
	/* As if the inner grate itself had sent it on. */
	return make_threei_call(2, 0, inner, c1, PASS, 0);
}

/* (target, number) (-, grate) (function, -) */
HANDLER(on_register)
{
	int r;

	if (c1 != 2 || (inner && inner != c2))
		return make_threei_call(1001, 0, grate, grate, PASS, 0);
	inner = c2;
	r = make_threei_call(1001, 0, grate, grate, grate, ALTERNATE, 0, c2, a3, 0, 0, 0, 0, 0, 0, 0, 0);
	return r ? r : register_handler(a1, 2, grate, (uint64_t)(uintptr_t)on_open);
}

static void before(uint64_t child, uint64_t grate)
{
	take(child, 1001, grate, on_register);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	prefix = argv[1];
	return run_registering_child(argv + 2, before);
}
