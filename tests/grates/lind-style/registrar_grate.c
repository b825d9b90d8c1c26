/* Writes registrations, copies and table copies of the programs after it to standard error; nobody
 * may have number 102. */
#include "style.h"

HANDLER(on_register)
{
	if (c1 == 102)
		return -EACCES;
	fprintf(stderr, "register %d%s\n", (int)c1, a1 == c2 ? " for itself" : "");
	return make_threei_call(1001, 0, grate, grate, PASS, 0);
}

HANDLER(on_copy)
{
	/* The caller must not appear as the end of a copy by this grate. */
	fprintf(stderr, "copy %d of type %d\n", (int)a3, (int)a4);
	return make_threei_call(1002, 0, grate, grate, PASS, 0);
}

HANDLER(on_copy_table)
{
	(void)grate;
	fprintf(stderr, "copy table %s\n", a1 == c1 ? "onto itself" : "");
	return make_threei_call(1003, 0, grate, grate, PASS, 0);
}

static void before(uint64_t child, uint64_t grate)
{
	take(child, 1001, grate, on_register);
	take(child, 1002, grate, on_copy);
	take(child, 1003, grate, on_copy_table);
}

int main(int argc, char **argv)
{
	(void)argc;
	return run_registering_child(argv + 1, before);
}
