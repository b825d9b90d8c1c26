/* Call 904 says which of the grate's threads runs the handler. */
#include <lind/grate.h>

#include <unistd.h>

static int64_t who(const struct lind_call *c)
{
	(void)c;
	return gettid();
}

int main(int argc, char **argv)
{
	static const struct lind_handler on[] = { { 904, who } };

	return lind_grate_run(on, 1, argc, argv);
}
