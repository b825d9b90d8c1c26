/* The limit on the size of files, RLIMIT_FSIZE: the kernel keeps it, and we hold writes to our
 * files to it. */
#include <sys/resource.h>
#include "memfs.h"

void signal_thread(uint64_t cage, int number)
{
	int64_t thread = lind_call_plain(SYS_gettid, cage, 0, 0, 0, 0);

	if (thread > 0)
		lind_call_plain(SYS_tgkill, cage, cage, (uint64_t)thread, (uint64_t)number, 0);
}

/* False if there is no such process any more. */
static bool ask(uint64_t cage, uint64_t *largest)
{
	struct lind_arg none = { 0, cage };
	uint64_t limit[2] = { UINT64_MAX };
	int64_t r = lind_call(
	    SYS_prlimit64, cage, none, (struct lind_arg){ RLIMIT_FSIZE, cage }, none, lind_mine(limit), none, none);

	*largest = limit[0];
	return r >= 0;
}

static void keep(struct imfs_process *p, uint64_t largest)
{
	p->limited = largest != UINT64_MAX;
	p->largest = largest;
}

/* Of a client that nobody else knows yet. */
void learn_limit(uint64_t cage, struct client *client)
{
	uint64_t largest;

	ask(cage, &largest);
	keep(&client->p, largest);
}

/* setrlimit, and prlimit64, which may be about a child: the kernel decides, then we look what
 * came of it. */
int64_t on_limit(const struct lind_call *c)
{
	bool names = c->nr == SYS_prlimit64;
	uint64_t cage = names && lind_arg32(c, 0) ? lind_arg32(c, 0) : c->target, largest;
	struct client *client;
	int64_t r;

	if (lind_arg32(c, names) != RLIMIT_FSIZE || (names && !c->args[2].value))
		return lind_pass(c);
	if ((r = lind_forward(c)) || !ask(cage, &largest))
		return r;
	client = client_of(cage);
	imfs_write_lock();
	if (client->cage == cage)
		keep(&client->p, largest);
	return done(r);
}
