/* Passes calls on unchanged: what is left is the cost of the way through a grate. */
#include <errno.h>
#include <lind/grate.h>
#include <stdlib.h>

#define MAX 64

LIND_HANDLE(observes, any, NULL);

static uint32_t numbers[MAX];
static size_t count;
static int64_t let_go(const struct lind_call *c)
{
	return lind_pass(c);
}
static int64_t let_go_in_handler(const struct lind_call *c)
{
	return lind_pass(c);
}
static lind_handle_fn *pass_on = let_go;

LIND_FILTER(let_go)
{
	return LIND_PASS;
}

static const char *add_number(const char *value)
{
	char *end;
	unsigned long nr;

	errno = 0;
	nr = strtoul(value, &end, 0);
	if (errno || *end || end == value || *value == '-' || nr >= LIND_NUMBERS)
		return "not a system call number";
	if (count == MAX)
		return "too many numbers; leave --nr out to forward every call";
	numbers[count++] = (uint32_t)nr;
	return NULL;
}

LIND_SETS(set_handler, pass_on = let_go_in_handler)
LIND_SETS(set_result, pass_on = lind_forward)

/* All calls, or those that were given. */
static lind_handle_fn *choose(uint32_t nr)
{
	for (size_t i = 0; i < count; i++)
		if (numbers[i] == nr)
			return pass_on;
	return count || lind_outside_any(nr) ? NULL : pass_on;
}

LIND_OPTION("n", "nr", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'n', "nr", "NUMBER", "forward this call only; may be repeated (default: every call)", add_number },
		{ 0, "handler", NULL, "let calls go on in a handler, not in the filter", set_handler },
		{ 'r', "result", NULL, "wait for the result and return it, as grates do that look at results",
		    set_result },
	};

	lind_options(options, 3, "Passes system calls on unchanged.", &argc, &argv);
	lind_grate_choose(choose);
	return lind_grate_main(argc, argv);
}
