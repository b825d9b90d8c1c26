/*
 * inotify as clients see it. Behind a client's number is a duplicate of an instance of the kernel's
 * that the grate has too: what is watched outside is watched by that, and poll, select and epoll
 * look at it. Its events are put behind those of our files, in the order in which they are found.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include "memfs.h"

#define LARGEFILE 0100000u /* which only what has a size shows */
#define LONGEST   4096 /* events that the kernel is asked for at once */
#define KNOWN \
	(IN_ALL_EVENTS | IN_ONLYDIR | IN_DONT_FOLLOW | IN_EXCL_UNLINK | IN_MASK_CREATE | IN_MASK_ADD | IN_ISDIR | \
	    IN_ONESHOT | IN_UNMOUNT | IN_Q_OVERFLOW | IN_IGNORED)

/* A file that nobody else has. Ending a watch of it makes an instance readable. */
static char bell[32];

static void ring(struct imfs_watcher *w)
{
	int number = w->rang ? -1 : inotify_add_watch(w->fd, bell, IN_DELETE_SELF);

	if (number >= 0 && !inotify_rm_watch(w->fd, number))
		w->rang = number;
}

/* Takes over what the kernel has to tell: after this it has nothing. The lock is held for
 * writing. */
static void gather(struct imfs_watcher *w)
{
	static char buffer[LONGEST] __attribute__((aligned(8)));
	int rang = w->rang;
	ssize_t got;

	w->rang = -1;
	while ((got = read(w->fd, buffer, sizeof buffer)) > 0)
		for (char *at = buffer; at < buffer + got;) {
			const struct inotify_event *event = (const struct inotify_event *)at;

			at += sizeof *event + event->len;
			if (event->wd != rang || !(event->mask & IN_IGNORED))
				imfs_watcher_add(w, event->wd, event->mask, event->cookie, event->name,
				    event->len ? strlen(event->name) : 0);
		}
	w->rang = 0;
}

static void ended(struct imfs_watcher *w)
{
	if (w->fd >= 0)
		close(w->fd);
}

void watchers_init(void)
{
	imfs_watcher_rings = ring;
	imfs_watcher_ended = ended;
}

/* The lock is held for writing. */
static int bell_make(void)
{
	int fd;

	if (bell[0])
		return 0;
	if ((fd = memfd_create("inotify", MFD_CLOEXEC)) < 0)
		return -errno;
	snprintf(bell, sizeof bell, "/proc/self/fd/%d", fd);
	return 0;
}

/* An instance, as an open file, which owns `fd` if there is one. The lock is held for writing. */
static int open_watcher(struct client *client, int fd, uint32_t flags, struct imfs_file **made)
{
	struct imfs_watcher *w;
	struct imfs_node *n;
	int r = bell_make();

	if (r || !(w = imfs_watcher_new(&fs, &client->p.cred, &n)))
		return r ? r : -ENOMEM;
	w->fd = -1;
	if (!(*made = imfs_file_new(&fs, n, flags & IN_NONBLOCK ? O_NONBLOCK : 0))) {
		imfs_node_settle(&fs, n);
		return -ENOMEM;
	}
	(*made)->flags &= ~LARGEFILE;
	w->fd = fd;
	ring(w);
	if (!w->rang) {
		w->fd = -1;
		imfs_file_drop(&fs, *made);
		return -ENOSYS;
	}
	gather(w);
	return 0;
}

static int64_t make(const struct lind_call *c, uint32_t flags)
{
	struct client *client = client_of(c->target);
	struct imfs_file *f;
	int fd, r;

	if (flags & ~(uint32_t)(IN_NONBLOCK | IN_CLOEXEC))
		return -EINVAL;
	/* How a client waits is for us to heed. */
	if ((fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) < 0)
		return -errno;
	imfs_write_lock();
	r = open_watcher(client, fd, flags, &f);
	imfs_write_unlock();
	if (!r)
		return give_fd(c->target, client, f, fd, flags & IN_CLOEXEC);
	close(fd);
	return r;
}

int64_t on_inotify_init(const struct lind_call *c)
{
	return make(c, 0);
}

int64_t on_inotify_init1(const struct lind_call *c)
{
	return make(c, lind_arg32(c, 0));
}

/* The lock is held. */
static struct imfs_watcher *watcher_of(struct lind_arg fd)
{
	const struct imfs_file *f = fd_of(client_of(fd.cage), fd);

	return f ? f->node->watcher : NULL;
}

/* The error for a descriptor that is not a watcher of ours. No lock is held. */
static int64_t no_watcher(struct lind_arg fd)
{
	int64_t r = lind_call_plain(SYS_fcntl, fd.cage, fd.value, F_GETFD, 0, 0);

	return r < 0 ? r : -EINVAL;
}

int64_t on_inotify_add_watch(const struct lind_call *c)
{
	uint32_t mask = lind_arg32(c, 2);
	enum imfs_follow follow = mask & IN_DONT_FOLLOW ? IMFS_NOFOLLOW : IMFS_FOLLOW;
	struct imfs_watcher *w;
	struct look l;
	int64_t r;

	if (!(mask & KNOWN))
		return -EINVAL;
	imfs_read_lock();
	w = watcher_of(c->args[0]);
	imfs_read_unlock();
	if ((r = w ? 0 : no_watcher(c->args[0])) == -EBADF)
		return r;
	if ((mask & IN_MASK_ADD && mask & IN_MASK_CREATE))
		return -EINVAL;
	if ((r = look(c, -1, 1, follow, false, &l)))
		return look_elsewhere(c, 1, (int)r, &l);
	if (!(w = watcher_of(c->args[0])))
		return done(-EINVAL);
	if (!(r = imfs_exists(&l.at)) && mask & IN_ONLYDIR && !S_ISDIR(l.at.node->mode))
		r = -ENOTDIR;
	if (!r)
		r = imfs_may(l.at.node, &l.client->p.cred, R_OK);
	return done(r ? r : imfs_watch(w, l.at.node, mask));
}

int64_t on_inotify_rm_watch(const struct lind_call *c)
{
	struct imfs_watcher *w;
	int r;

	imfs_write_lock();
	w = watcher_of(c->args[0]);
	r = w ? imfs_unwatch(w, (int32_t)lind_arg32(c, 1)) : -EINVAL;
	imfs_write_unlock();
	return r ? lind_forward(c) : 0;
}

int64_t watcher_waits(struct imfs_watcher *w)
{
	gather(w);
	if (w->count)
		ring(w);
	return (int64_t)w->bytes;
}

/* Whole events, as many as there is room for: how many bytes they are. */
static int64_t hand_over(struct imfs_watcher *w, struct lind_arg to, uint64_t room)
{
	char one[sizeof(struct inotify_event) + IMFS_NAME + 1];
	uint64_t used = 0;

	for (; w->first && imfs_event_size(w->first) <= room - used; imfs_watcher_took(w)) {
		const struct imfs_event *event = w->first;
		uint32_t size = (uint32_t)imfs_event_size(event);
		struct inotify_event head = { event->number, event->mask, event->cookie, size - (uint32_t)sizeof head };

		memset(one, 0, sizeof one);
		memcpy(one, &head, sizeof head);
		memcpy(one + sizeof head, event->name, event->length);
		if (lind_write(lind_at(to, used), one, size))
			return used ? (int64_t)used : -EFAULT;
		used += size;
	}
	return used ? (int64_t)used : -EINVAL;
}

/* Until there may be something. The lock is held, and given back. */
static int64_t wait_for(const struct lind_call *c, struct imfs_file *f)
{
	struct pollfd waits = { .fd = f->node->watcher->fd, .events = POLLIN };
	struct lind_arg one = { 1, c->target }, forever = { (uint64_t)-1, c->target }, none = { 0, c->target };
	int64_t r;

	f->refs++;
	imfs_write_unlock();
	r = lind_call(SYS_poll, c->target, lind_mine(&waits), one, forever, none, none, none);
	imfs_write_lock();
	imfs_file_drop(&fs, f);
	imfs_write_unlock();
	return r < 0 ? r : 0;
}

int64_t watcher_read(const struct lind_call *c, const struct iovec *iov, uint64_t count, bool wait)
{
	struct client *client = client_of(c->args[0].cage);
	struct imfs_file *f;
	int64_t r = 0;

	/* The others are for the next call. */
	for (; count > 1 && !iov->iov_len; count--)
		iov++;
	while (!r) {
		imfs_write_lock();
		/* Another thread may have put another file there. */
		if (!(f = fd_of(client, c->args[0])) || !f->node->watcher)
			return done(-EBADF);
		gather(f->node->watcher);
		if (f->node->watcher->count) {
			r = hand_over(f->node->watcher, (struct lind_arg){ (uintptr_t)iov->iov_base, c->args[1].cage },
			    count ? iov->iov_len : 0);
			if (f->node->watcher->count)
				ring(f->node->watcher);
			return done(r);
		}
		if (!wait || f->flags & O_NONBLOCK)
			return done(-EAGAIN);
		r = wait_for(c, f);
	}
	return r;
}
