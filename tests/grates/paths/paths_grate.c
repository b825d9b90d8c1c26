/* Makes every call that takes a path again on what a walk found: programs must not notice. */
#include <lind/paths.h>
#include <lind/grate.h>

static int64_t on_path(const struct lind_call *c)
{
	/* A start is not to be followed through a descriptor of the grate that only the kernel's launch
	 * knows. */
	return lind_path_call(c, NULL, NULL, NULL);
}

static int64_t on_fd(const struct lind_call *c)
{
	return lind_path_fd_call(c, NULL, NULL, NULL);
}

#define PATH(name) LIND_HANDLE(alters, name, on_path);
#define FD(name)   LIND_HANDLE(alters, name, on_fd);
LIND_EACH_PATH_CALL(PATH)
LIND_EACH_CHANGING_FD_CALL(FD)

int main(int argc, char **argv)
{
	lind_grate_without(SYS_spawn);
	lind_grate_without(SYS_execve);
	lind_grate_without(SYS_execveat);
	return lind_grate_main(argc, argv);
}
