/* Watches children come, run programs and go. With -r it answers fork with a number of its own. */
#include "style.h"

static struct life {
	int forks, execs, exits, child;
} *life;
static int own_result;

HANDLER(on_clone)
{
	int child = FORWARD(56);

	(void)grate;
	/* The child does not run before we have answered. */
	if (child > 0 && !(a1 & 0x10000)) {
		life->forks++;
		life->child = child;
	}
	return child > 0 && own_result ? own_result : child;
}

HANDLER(on_exec)
{
	int r = FORWARD(59);

	(void)grate;
	if (!r)
		life->execs++;
	return r;
}

HANDLER(on_exit)
{
	(void)grate;
	life->exits++;
	return FORWARD(231);
}

static void before(uint64_t child, uint64_t grate)
{
	take(child, 56, grate, on_clone);
	take(child, 59, grate, on_exec);
	take(child, 231, grate, on_exit);
}

int main(int argc, char **argv)
{
	int status;

	(void)argc;
	if (!(life = calloc(1, sizeof *life)))
		return 1;
	if (!strcmp(argv[1], "-r")) {
		own_result = atoi(argv[2]);
		argv += 2;
	}
	status = run_registering_child(argv + 1, before);
	printf("forks %d, execs %d, exits %d, status %d\n", life->forks, life->execs, life->exits, status);
	return 0;
}
