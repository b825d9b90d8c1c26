/* A directory is the root for clients. */
#include <errno.h>
#include <lind/view.h>
#include <string.h>

static struct lind_view *view;
/* The kernel's own trees that are to be inside, once the root is known. */
static const char *shown[2];

static const char *dir(const char *value)
{
	if (view)
		return "may be given only once";
	return (view = lind_view_new(value)) ? NULL : strerror(errno);
}

static const char *proc(const char *none)
{
	(void)none;
	shown[0] = "/proc";
	return NULL;
}

static const char *dev(const char *none)
{
	(void)none;
	shown[1] = "/dev";
	return NULL;
}

/* Shows one of the kernel's own trees, such as /proc, at its usual path in the new root. */
static void show(const char *path)
{
	int r = path ? lind_view_bind(view, path, path) : 0;

	if (r)
		lind_die("%s: %s", path, strerror(-r));
}

LIND_VIEW_CALLS

LIND_OPTION("d", "dir", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'd', "dir", "DIRECTORY", "make DIRECTORY the root of clients", dir },
		{ 0, "proc", NULL, "show /proc in it, too", proc },
		{ 0, "dev", NULL, "show /dev in it, too", dev },
	};

	lind_options(options, 3, "Makes a directory the root of clients.", &argc, &argv);
	if (!view)
		lind_die("--dir is missing");
	show(shown[0]);
	show(shown[1]);
	lind_view_use(view);
	return lind_grate_main(argc, argv);
}
