/* Sees every call in one handler, of which it answers getppid; geteuid has its own. */
#include <lind/grate.h>

LIND_HANDLE(alters, any);
LIND_HANDLE(answers, geteuid);

static int64_t on_any(const struct lind_call *cx)
{
	return cx->nr == SYS_getppid ? 11 : lind_pass(cx);
}

static int64_t on_geteuid(const struct lind_call *cx)
{
	(void)cx;
	return 10;
}

int main(int argc, char **argv)
{
	return lind_grate_main(argc, argv);
}
