/* Answers geteuid(2) with 10. The smallest grate there is. */
#include <lind/typed.h>

LIND_ON(geteuid);

static int64_t on_geteuid(struct lind_cx *cx)
{
	(void)cx;
	return 10;
}

int main(int argc, char **argv)
{
	return lind_grate_main(argc, argv);
}
