/* Passes its client's geteuid on by every table there is, those that it has no right to included. 7
 * if all is well. */
#include <errno.h>
#include <lind/raw.h>

static int64_t by(uint64_t cage)
{
	return lind_import_syscall(SYS_call_by, 0, cage, 0, 0, 0, 0);
}

static int64_t on_geteuid(const struct lind_call *c)
{
	/* Calls that we make by our client's table come back to us. */
	if (c->caller == lind_self())
		return c->target != c->caller && by(0) >= 0 ? 42 : -EIO;
	for (uint64_t cage = 1; cage < lind_self(); cage++) {
		int64_t r = by(cage);

		/* Threads have numbers, too. */
		if (r != -EPERM && (r != -ESRCH || cage == 1))
			return 100 + (int64_t)cage;
	}
	if (by(1000000) != -ESRCH || by(UINT64_MAX) != -ESRCH)
		return 200;
	if (by(lind_self()) != lind_call_plain(SYS_geteuid, c->target, 0, 0, 0, 0))
		return 201;
	return by(c->target) == 42 && by(c->target) == 42 ? 7 : 202;
}

int main(int argc, char **argv)
{
	static const struct lind_handler on[] = { { SYS_geteuid, on_geteuid } };

	return lind_grate_run(on, 1, argc, argv);
}
