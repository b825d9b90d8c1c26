/* Chooses handlers at the start: geteuid has a line of its own, getppid's handler is chosen, getpid
 * is left out. With --rest all other calls are seen, too. It prints at the end what it has seen. */
#include <lind/grate.h>

LIND_HANDLE(answers, geteuid);
LIND_HANDLE(answers, any, NULL);

static bool rest;
static _Atomic unsigned getpids, others;

static int64_t on_geteuid(const struct lind_call *cx)
{
	(void)cx;
	return 10;
}

static int64_t eleven(const struct lind_call *cx)
{
	(void)cx;
	return 11;
}

static int64_t on_rest(const struct lind_call *cx)
{
	if (cx->nr == SYS_getpid)
		getpids++;
	else
		others++;
	return lind_pass(cx);
}

static lind_handle_fn *choose(uint32_t nr)
{
	if (nr == SYS_geteuid || nr == SYS_getppid)
		return eleven;
	return rest && nr != SYS_getpid && !lind_outside_any(nr) ? on_rest : NULL;
}

static void end(int status)
{
	(void)status;
	lind_log("getpid %s, others %s", getpids ? "seen" : "not seen", others ? "seen" : "not seen");
}

LIND_SETS(set_rest, rest = true)

int main(int argc, char **argv)
{
	static const struct lind_option options[] = { { 0, "rest", NULL, "see the other calls", set_rest } };
	static const struct lind_lifecycle lifecycle = { .end = end };

	lind_options(options, 1, "Chooses its handlers.", &argc, &argv);
	lind_grate_lifecycle(&lifecycle);
	lind_grate_choose(choose);
	return lind_grate_main(argc, argv);
}
