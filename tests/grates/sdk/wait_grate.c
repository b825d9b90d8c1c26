/* Call 902 waits until call 903 was made; with an argument, at most so many milliseconds. */
#include <lind/grate.h>

static uint32_t opened;

static int64_t wait_for_it(const struct lind_call *c)
{
	uint32_t ms = (uint32_t)c->args[0].value;
	struct timespec limit = { ms / 1000, ms % 1000 * 1000000 };

	while (!__atomic_load_n(&opened, __ATOMIC_ACQUIRE)) {
		int r = lind_wait(c->target, &opened, 0, ms ? &limit : NULL);

		if (r && r != -EAGAIN)
			return r;
	}
	return 7;
}

static int64_t open_it(const struct lind_call *c)
{
	(void)c;
	__atomic_store_n(&opened, 1, __ATOMIC_RELEASE);
	lind_wake(&opened);
	return 0;
}

int main(int argc, char **argv)
{
	static const struct lind_handler on[] = { { 902, wait_for_it }, { 903, open_it } };

	return lind_grate_run(on, 2, argc, argv);
}
