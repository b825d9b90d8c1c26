/* Answers geteuid(2) with 10. The smallest grate there is. */
#include <lind/grate.h>

LIND_HANDLE(answers, geteuid);

static int64_t on_geteuid(const struct lind_call *cx)
{
	(void)cx;
	return 10;
}

int main(int argc, char **argv)
{
	return lind_grate_main(argc, argv);
}
