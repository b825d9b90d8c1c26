/* Clients see files in other places, or not at all. */
#include <errno.h>
#include <lind/view.h>
#include <stdlib.h>
#include <string.h>

static struct lind_view *view;
static bool given;

/* WHAT=AT */
static const char *place(const char *value, bool hide)
{
	char *what = strdup(value), *at = what ? strchr(what, '=') : NULL, clean[PATH_MAX];
	const char *wrong;
	int r;

	given = true;
	if (!at || at == what)
		return "must be two paths with = between them";
	*at++ = 0;
	if ((wrong = lind_path_clean(at, clean)))
		return wrong;
	if (!strcmp(clean, "/"))
		return "the root cannot be moved; see chroot";
	if ((r = lind_view_bind(view, clean, what)))
		return strerror(-r);
	if (hide && (wrong = lind_path_clean(what, clean)))
		return wrong;
	if (hide && (r = lind_view_hide(view, clean)))
		return strerror(-r);
	return NULL;
}

static const char *bind_at(const char *value)
{
	return place(value, false);
}

static const char *remap(const char *value)
{
	return place(value, true);
}

static const char *hide(const char *value)
{
	char clean[PATH_MAX];
	const char *wrong = lind_path_clean(value, clean);
	int r;

	given = true;
	if (wrong)
		return wrong;
	if (!strcmp(clean, "/"))
		return "the root cannot be hidden";
	r = lind_view_hide(view, clean);
	return r ? strerror(-r) : NULL;
}

LIND_VIEW_CALLS

LIND_OPTION("b", "bind", "value");
LIND_OPTION("r", "remap", "value");
LIND_OPTION("-", "hide", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'b', "bind", "WHAT=AT", "show the file or directory WHAT at AT, too", bind_at },
		{ 'r', "remap", "WHAT=AT", "show it at AT and not at WHAT", remap },
		{ 0, "hide", "PATH", "show nothing at PATH", hide },
	};

	if (!(view = lind_view_new("/")))
		lind_die("/: %s", strerror(errno));
	lind_options(options, 3, "Shows clients files in other places, or not at all.", &argc, &argv);
	if (!given)
		lind_die("nothing to change: give it --bind WHAT=AT, --remap WHAT=AT or --hide PATH");
	lind_view_use(view);
	return lind_grate_main(argc, argv);
}
