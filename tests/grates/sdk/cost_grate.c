/* Pairs of calls that cost the kernel the same, one handled in C types and one as it comes: see
 * cost.c. */
#include <lind/grate.h>

LIND_HANDLE(answers, getpid);
LIND_HANDLE(observes, geteuid);
LIND_HANDLE(observes, stat);

static int64_t on_getpid(const struct lind_call *cx)
{
	(void)cx;
	return 10;
}

static int64_t on_geteuid(const struct lind_call *cx)
{
	return lind_forward(cx);
}

static int64_t on_stat(const struct lind_call *cx, const char *path, struct lind_arg buf)
{
	return lind_forward_stat(cx, path, buf);
}

static int64_t answer(const struct lind_call *c)
{
	(void)c;
	return 10;
}

/* The work of a careful handler without the typed layer. */
static int64_t copy_and_forward(const struct lind_call *c)
{
	struct lind_call changed = *c;
	char path[PATH_MAX];
	ssize_t r = lind_read_string(c->args[0], path, sizeof path);

	if (r < 0)
		return r;
	changed.args[0] = lind_mine(path);
	return lind_forward(&changed);
}

LIND_HANDLE(answers, getppid, answer);
LIND_HANDLE(observes, getegid, lind_forward);
LIND_HANDLE(observes, lstat, copy_and_forward);

int main(int argc, char **argv)
{
	return lind_grate_main(argc, argv);
}
