/* Passes calls on unchanged: what is left is the cost of the way through a grate. */
#include <errno.h>
#include <lind/typed.h>
#include <stdlib.h>

#define MAX 64

LIND_DECLARE("observes", any);

static struct lind_handler on[MAX];
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
	if (errno || *end || end == value || *value == '-' || nr >= LIND_NR_ANY)
		return "not a system call number";
	if (count == MAX)
		return "too many numbers; leave --nr out to forward every call";
	on[count++] = (struct lind_handler){ .nr = (uint32_t)nr };
	return NULL;
}

LIND_SETS(set_handler, pass_on = let_go_in_handler)
LIND_SETS(set_result, pass_on = lind_forward)

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
	if (!count)
		on[count++].nr = LIND_NR_ANY;
	for (size_t i = 0; i < count; i++)
		on[i].handle = pass_on;
	return lind_grate_run(on, count, argc, argv);
}
