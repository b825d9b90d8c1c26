/* A grate in parts, which are added in the order of its options. Its own user id is 1; each part
 * adds a number to what is below it. */
#include <lind/grate.h>
#include <lind/options.h>

LIND_HANDLE(answers, geteuid);
LIND_HANDLE_OF(tens, answers, getegid);

static int64_t on_geteuid(const struct lind_call *cx)
{
	(void)cx;
	return 1;
}

static int64_t on_getegid(const struct lind_call *cx)
{
	(void)cx;
	return 7;
}

static int64_t add_ten(const struct lind_call *cx)
{
	return lind_below(tens, cx) + 10;
}

static int64_t add_hundred(const struct lind_call *cx)
{
	return lind_below(hundreds, cx) + 100;
}

/* The call that a part changes is the one that the part below it gets. */
static int64_t twice(const struct lind_call *cx)
{
	struct lind_call changed = *cx;

	changed.args[0].value *= 2;
	return lind_below(hundreds, &changed);
}

static int64_t mask(const struct lind_call *cx)
{
	return (int64_t)cx->args[0].value;
}

LIND_HANDLE_OF(tens, answers, geteuid, add_ten);
LIND_HANDLE_OF(hundreds, answers, geteuid, add_hundred);
LIND_HANDLE(answers, umask, mask);
LIND_HANDLE_OF(hundreds, alters, umask, twice);

static const char *set_tens(const char *value)
{
	(void)value;
	lind_grate_part(tens);
	return NULL;
}

static const char *set_hundreds(const char *value)
{
	(void)value;
	lind_grate_part(hundreds);
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 't', "tens", NULL, "add ten", set_tens },
		{ 'u', "hundreds", NULL, "add a hundred", set_hundreds },
	};

	lind_options(options, 2, "Adds numbers.", &argc, &argv);
	return lind_grate_main(argc, argv);
}
