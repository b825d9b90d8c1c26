/* Gives the machine another name. */
#include <lind/grate.h>
#include <sys/utsname.h>

LIND_HANDLE(alters, uname);

static const char *name = "@NAME@";

/* The kernel fills a struct of ours, and the client gets a changed copy. */
static int64_t on_uname(const struct lind_call *cx, struct lind_arg buf)
{
	struct utsname answer = { 0 };
	int64_t r = lind_forward_uname(cx, lind_mine(&answer));

	if (r < 0)
		return r;
	strncpy(answer.nodename, name, sizeof answer.nodename - 1);
	return lind_write(buf, &answer, sizeof answer);
}

static const char *set_name(const char *value)
{
	struct utsname answer;

	if (strlen(value) >= sizeof answer.nodename)
		return "too long for a name";
	name = value;
	return NULL;
}

LIND_OPTION("n", "name", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'n', "name", "NAME", "give the machine this name (default: @NAME@)", set_name },
	};

	lind_options(options, 1, "Gives the machine another name.", &argc, &argv);
	return lind_grate_main(argc, argv);
}
