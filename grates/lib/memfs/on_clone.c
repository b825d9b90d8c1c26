/* Requests that have files share their blocks: none do here, as on a tmpfs. Requests that Linux
 * refuses before it asks a file system get the same error, and the rest EOPNOTSUPP, which makes
 * programs copy. */
#include <lind/entries.h>
#include "memfs.h"

#define FICLONERANGE_  0x4020940du
#define FIDEDUPERANGE_ 0xc0189436u

/* Between two files of ours. The lock is held. */
static int64_t refuse(const struct imfs_file *to, const struct imfs_file *from)
{
	if ((to->flags | from->flags) & O_PATH)
		return -EBADF;
	if (S_ISDIR(to->node->mode) || S_ISDIR(from->node->mode))
		return -EISDIR;
	if (!S_ISREG(to->node->mode) || !S_ISREG(from->node->mode))
		return -EINVAL;
	return imfs_may_read(from) || imfs_may_write(to) || (to->flags & O_APPEND) ? -EBADF : -EOPNOTSUPP;
}

/* FICLONE and FICLONERANGE, to a file of ours. */
static int64_t clone_range(const struct lind_call *c, uint32_t number)
{
	uint64_t cage = c->args[0].cage;
	struct client *client;
	struct imfs_file *to = fd_take(c, 0, &client), *from;
	int64_t flags;

	if (!to)
		return -EBADF;
	if ((from = fd_of(client, (struct lind_arg){ number, cage })))
		return done(refuse(to, from));
	imfs_write_unlock();
	flags = lind_call_plain(SYS_fcntl, cage, number, F_GETFL, 0, 0);
	return flags < 0 || (flags & O_PATH) ? -EBADF : -EXDEV;
}

/* FIDEDUPERANGE, from a file of ours. */
static int64_t same_range(const struct lind_call *c)
{
	struct {
		uint64_t from, length;
		uint16_t count, reserved;
		uint32_t reserved_too;
	} head;
	struct client *client;
	struct imfs_file *from;
	int r = lind_read(c->args[2], &head, sizeof head);

	if (r)
		return r;
	if (sizeof head + head.count * 32ul > 4096)
		return -ENOMEM;
	if (!(from = fd_take(c, 0, &client)))
		return -EBADF;
	if (head.reserved || head.reserved_too || (from->flags & O_ACCMODE) == O_WRONLY)
		return done(-EINVAL);
	return done(S_ISDIR(from->node->mode) ? -EISDIR : S_ISREG(from->node->mode) ? -EOPNOTSUPP : -EINVAL);
}

int64_t on_clone_request(const struct lind_call *c, uint32_t request)
{
	int64_t range[4];
	int r;

	if (request == FIDEDUPERANGE_)
		return same_range(c);
	if (request != FICLONERANGE_)
		return clone_range(c, lind_arg32(c, 2));
	r = lind_read(c->args[2], range, sizeof range);
	return r ? r : clone_range(c, (uint32_t)range[0]);
}
