/* Answers geteuid(2) with 10. The smallest grate there is. */
#include <lind/grate.h>

static int64_t on_geteuid(const struct lind_call *c)
{
	(void)c;
	return 10;
}

int main(int argc, char **argv)
{
	static const struct lind_handler on[] = { { SYS_geteuid, on_geteuid } };

	return lind_grate_run(on, 1, argc, argv);
}
