/* Passes calls on unchanged: what is left is the cost of the way through a grate. */
#include <errno.h>
#include <lind/typed.h>
#include <stdlib.h>

#define MAX 64

LIND_DECLARE("observes", any);

static struct lind_handler on[MAX];
static size_t count;

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
	on[count++] = (struct lind_handler){ (uint32_t)nr, lind_forward };
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'n', "nr", "NUMBER", "forward this call only; may be repeated (default: every call)", add_number },
	};

	lind_options(options, 1, "Passes system calls on unchanged.", &argc, &argv);
	if (!count)
		on[count++] = (struct lind_handler){ LIND_NR_ANY, lind_forward };
	return lind_grate_run(on, count, argc, argv);
}
