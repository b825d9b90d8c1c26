/*
 * Lets calls go on, from handlers of both kinds; with --result it forwards them instead. getpgrp
 * says how many reads there have been, getsid ends the grate, and what is let go on changed goes on
 * changed.
 */
#include <lind/grate.h>
#include <stdlib.h>
#include <unistd.h>

static int result;
static _Atomic int reads;

LIND_HANDLE(observes, read);
LIND_HANDLE(answers, getpgrp);
LIND_HANDLE(answers, getsid);

static int64_t on_read(const struct lind_call *cx, int fd, struct lind_arg buf, size_t len)
{
	(void)fd, (void)buf;
	if (len == 1)
		reads++;
	return result ? lind_forward(cx) : lind_pass(cx);
}

static int64_t on_getpgrp(const struct lind_call *cx)
{
	(void)cx;
	return reads;
}

static int64_t on_getsid(const struct lind_call *cx, pid_t pid)
{
	(void)cx, (void)pid;
	_exit(0);
}

static int64_t on_geteuid(const struct lind_call *c)
{
	struct lind_call copy = *c;

	copy.nr = SYS_getpid;
	return lind_pass(&copy);
}
LIND_HANDLE(alters, geteuid, on_geteuid);

/* Of a grate that this one is in front of: what that passes on as it came does not come here, where
 * it could not be passed on. */
LIND_HANDLE(observes, call_by, lind_forward);

LIND_SETS(set_result, result = 1)

int main(int argc, char **argv)
{
	static const struct lind_option options[] = { { 'r', "result", NULL, "forward", set_result } };

	lind_options(options, 1, "Lets calls go on.", &argc, &argv);
	return lind_grate_main(argc, argv);
}
