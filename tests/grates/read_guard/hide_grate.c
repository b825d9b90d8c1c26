/* Nobody reads what is below /grates-test/tree/home/.ssh. */
#include <errno.h>
#include <lind/guard.h>

static bool may_read(const char *path)
{
	return !lind_path_below(path, "/grates-test/tree/home/.ssh");
}

LIND_READ_GUARD_CALLS

int main(int argc, char **argv)
{
	static const struct lind_guard guard = { .may_read = may_read };

	lind_guard_begin(&guard);
	return lind_grate_main(argc, argv);
}
