/* Declares less than it registers: beyond, with `more` in front of the program. With `self` it
 * registers on its child later. */
#include <lind/grate.h>
#include <stdio.h>

LIND_HANDLE(observes, geteuid);

static int64_t raw(const struct lind_call *c)
{
	return lind_forward(c);
}

/* Tries to take over read of its client, in the middle of a call. */
static int64_t on_geteuid(const struct lind_call *cx)
{
	struct lind_arg none = { 0, lind_self() };
	int64_t r = lind_call(SYS_register_handler, lind_self(), (struct lind_arg){ cx->target, lind_self() },
	    (struct lind_arg){ SYS_read, lind_self() }, (struct lind_arg){ lind_self(), lind_self() },
	    (struct lind_arg){ (uintptr_t)raw, lind_self() }, none, none);
	int64_t any = lind_call(SYS_register_handler, lind_self(), (struct lind_arg){ cx->target, lind_self() },
	    (struct lind_arg){ LIND_NR_ANY, lind_self() }, (struct lind_arg){ lind_self(), lind_self() },
	    (struct lind_arg){ (uintptr_t)raw, lind_self() }, none, none);

	return r == -EPERM && any == -EPERM ? 11 : 12;
}

int main(int argc, char **argv)
{
	static const struct lind_handler more[] = { { SYS_geteuid, raw }, { SYS_read, raw } };

	if (argc > 2 && !strcmp(argv[1], "more"))
		return lind_grate_run(more, 2, argc - 1, argv + 1);
	return lind_grate_main(argc, argv);
}
