/*
 * Answers geteuid with 4242 and, while its client calls it, registers another handler (4343) and
 * this one again, in turns. The client and its children get one of the two, whenever they call.
 * With --gap it takes the old one away first, so that the kernel answers between.
 */
#include <lind/raw.h>

#define TURNS      2000
#define DEREGISTER 2

static int gap;

static int64_t on_geteuid(const struct lind_call *call)
{
	(void)call;
	return 4242;
}

static int64_t other(const struct lind_call *call)
{
	(void)call;
	return 4343;
}

/* Asked for by the client: any number of turns. */
static int64_t on_getpgid(const struct lind_call *call)
{
	for (int i = 0; i < TURNS; i++) {
		uint32_t entry = (uint32_t)(uintptr_t)(i % 2 ? other : on_geteuid);
		int64_t r = 0;

		if (gap)
			r = lind_import_syscall(
			    SYS_register_handler, call->target, SYS_geteuid, lind_self(), 0, DEREGISTER, 0);
		if (r == 0)
			r = lind_import_syscall(
			    SYS_register_handler, call->target, SYS_geteuid, lind_self(), entry, 0, 0);
		if (r < 0)
			return r;
	}
	return 0;
}

LIND_SETS(set_gap, gap = 1)

int main(int argc, char **argv)
{
	static const struct lind_option options[] = { { 0, "gap", NULL, "leave a gap", set_gap } };
	static const struct lind_handler on[] = { { SYS_geteuid, on_geteuid }, { SYS_getpgid, on_getpgid } };

	lind_options(options, 1, "Takes turns.", &argc, &argv);
	return lind_grate_run(on, 2, argc, argv);
}
