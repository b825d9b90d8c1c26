/*
 * poll, of fifos. The kernel looks at what is behind the client's numbers, an eventfd that is
 * readable at the end and writable without readers; what Linux says of that is put into its answer.
 */
#include <poll.h>
#include "memfs.h"

#define AT_ONCE 64
#define DATA    (POLLIN | POLLRDNORM)
#define ROOM    (POLLOUT | POLLWRNORM)

/* As pipe_poll of Linux; of what was asked for, but for the two that always are. */
static short of_fifo(const struct imfs_file *f, const struct pollfd *p)
{
	const struct imfs_fifo *fifo = f->node->fifo;
	short now = p->revents;

	if (!imfs_may_read(f) && !fifo->writers && fifo->writes_opened)
		now = (short)((fifo->used ? now : now & ~DATA) | POLLHUP);
	if (!imfs_may_write(f) && !fifo->readers)
		now = (short)((IMFS_FIFO - fifo->used < IMFS_PIPE_BUF ? now & ~ROOM : now) | POLLERR);
	return now;
}

static bool amend(struct client *client, uint64_t cage, struct pollfd *some, size_t count)
{
	bool amended = false;

	imfs_read_lock();
	for (size_t i = 0; i < count; i++) {
		const struct imfs_file *f = some[i].revents && some[i].fd >= 0
		    ? fd_of(client, (struct lind_arg){ (uint32_t)some[i].fd, cage })
		    : NULL;
		short now = f && imfs_is_fifo(f) ? of_fifo(f, &some[i]) : some[i].revents;

		amended |= now != some[i].revents;
		some[i].revents = now;
	}
	imfs_read_unlock();
	return amended;
}

/* poll and ppoll. The numbers in a set are those of the cage that the set is in. */
int64_t on_poll(const struct lind_call *c)
{
	uint64_t count = c->args[1].value;
	struct pollfd some[AT_ONCE];
	int64_t ready;

	if (!fifos_open())
		return lind_pass(c);
	ready = lind_forward(c);
	for (uint64_t at = 0; ready > 0 && at < count && count <= IMFS_FDS; at += AT_ONCE) {
		size_t n = count - at < AT_ONCE ? (size_t)(count - at) : AT_ONCE;
		struct lind_arg there = lind_at(c->args[0], at * sizeof *some);

		if (lind_read(there, some, n * sizeof *some))
			return -EFAULT;
		if (amend(client_of(c->args[0].cage), c->args[0].cage, some, n) &&
		    lind_write(there, some, n * sizeof *some))
			return -EFAULT;
	}
	return ready;
}
