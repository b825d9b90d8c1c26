/* Its handlers of births and programs have nothing more to do with them. It prints at the end what
 * it has learnt about its clients. */
#include <lind/grate.h>

static unsigned starts, forks, execs, exits;

static int64_t let_go(const struct lind_call *c)
{
	return lind_pass(c);
}

LIND_HANDLE(observes, clone, let_go);
LIND_HANDLE(observes, execve, let_go);

static void *started(uint64_t cage)
{
	(void)cage;
	starts++;
	return &starts;
}

static void *forked(void *parent, uint64_t parent_cage, uint64_t cage, int spawned)
{
	(void)parent_cage;
	(void)cage;
	forks += !spawned;
	return parent;
}

static void execed(void *client, uint64_t cage)
{
	(void)cage;
	execs += client == &starts;
}

static void ended(void *client, uint64_t cage, int status)
{
	(void)client;
	(void)cage;
	(void)status;
	exits++;
}

static void end(int status)
{
	lind_log("starts %u, forks %u, execs %u, exits %u, status %d", starts, forks, execs, exits, status);
}

int main(int argc, char **argv)
{
	static const struct lind_lifecycle lifecycle = { started, forked, execed, ended, end };

	lind_grate_lifecycle(&lifecycle);
	return lind_grate_main(argc, argv);
}
