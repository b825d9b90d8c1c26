/* Ends by a trap at the first rmdir. */
#include <lind/raw.h>

static int64_t on_rmdir(const struct lind_call *c)
{
	(void)c;
	__builtin_trap();
}

int main(int argc, char **argv)
{
	static const struct lind_handler on[] = { { SYS_rmdir, on_rmdir }, { SYS_open, lind_forward },
		{ SYS_mkdir, lind_forward } };

	return lind_grate_run(on, 3, argc, argv);
}
