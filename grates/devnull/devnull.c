/* Chosen paths are /dev/null to clients, whatever is there. */
#include <errno.h>
#include <lind/view.h>
#include <string.h>

static struct lind_view *view;
static bool given;

static const char *add(const char *value)
{
	char clean[PATH_MAX];
	const char *wrong = lind_path_clean(value, clean);
	int r;

	given = true;
	if (wrong)
		return wrong;
	if (!strcmp(clean, "/"))
		return "must name a file";
	r = lind_view_bind(view, clean, "/dev/null");
	return r ? strerror(-r) : NULL;
}

LIND_VIEW_CALLS

LIND_OPTION("p", "path", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'p', "path", "PATH", "discard all data written to PATH; reads find it empty", add },
	};

	if (!(view = lind_view_new("/")))
		lind_die("/: %s", strerror(errno));
	lind_options(options, 1, "Makes files discard the data that is written to them.", &argc, &argv);
	if (!given)
		lind_die("no file is named: give it --path PATH");
	lind_view_use(view);
	return lind_grate_main(argc, argv);
}
