/* Says how many times data of at least 4000 bytes was copied between cages. */
#include <lind/raw.h>
#include <stdio.h>

static int seen;

static int64_t on_copy(const struct lind_call *c)
{
	if (c->args[2].value >= 4000 && c->args[2].value < 8192)
		__atomic_fetch_add(&seen, 1, __ATOMIC_RELAXED);
	return lind_forward(c);
}

static void end(int status)
{
	(void)status;
	printf("%d\n", seen);
}

int main(int argc, char **argv)
{
	static const struct lind_handler on[] = { { SYS_copy_data_between_cages, on_copy } };
	static const struct lind_lifecycle lifecycle = { .end = end };

	lind_grate_lifecycle(&lifecycle);
	return lind_grate_run(on, 1, argc, argv);
}
