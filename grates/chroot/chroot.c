/* A directory is the root for clients. */
#include <errno.h>
#include <lind/view.h>
#include <string.h>

static struct lind_view *view;

static const char *dir(const char *value)
{
	if (view)
		return "there is one root only";
	return (view = lind_view_new(value)) ? NULL : strerror(errno);
}

/* The kernel's own trees are in its root; here they are where they are looked for, if that is wanted. */
static const char *show(const char *path)
{
	int r;

	if (!view)
		return "comes after --dir";
	r = lind_view_bind(view, path, path);
	return r ? strerror(-r) : NULL;
}

static const char *proc(const char *none)
{
	(void)none;
	return show("/proc");
}

static const char *dev(const char *none)
{
	(void)none;
	return show("/dev");
}

LIND_VIEW_CALLS

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'd', "dir", "DIRECTORY", "the new root", dir },
		{ 0, "proc", NULL, "/proc is there as well", proc },
		{ 0, "dev", NULL, "/dev is there as well", dev },
	};

	lind_options(options, 3, "Makes a directory the root of clients.", &argc, &argv);
	if (!view)
		lind_die("--dir is missing");
	lind_view_use(view);
	return lind_grate_main(argc, argv);
}
