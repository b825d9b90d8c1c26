/*
 * Messages, and descriptors in them. A file is known again by its device and inode number: what was sent while it was inside is inside where
 * it arrives.
 */
#include <lind/transfer.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "namespace.h"

#define NUMBERS_LOOKED_AT 1024u	/* for other descriptors of a socket that turns out to be inside */

static struct { uint64_t dev, ino; } *sent;
static size_t sent_count, sent_room;
static pthread_mutex_t sent_lock = PTHREAD_MUTEX_INITIALIZER;

static bool identify(uint64_t cage, uint64_t fd, struct stat *st)
{
	struct lind_arg none = { 0, cage };

	return lind_call(SYS_fstat, cage, (struct lind_arg){ fd, cage }, lind_mine(st), none, none, none, none) >= 0;
}

static bool was_sent(const struct stat *st)
{
	bool yes = false;

	pthread_mutex_lock(&sent_lock);
	for (size_t i = 0; i < sent_count && !yes; i++)
		yes = sent[i].dev == st->st_dev && sent[i].ino == st->st_ino;
	pthread_mutex_unlock(&sent_lock);
	return yes;
}

static int remember(const struct stat *st)
{
	int r = 0;

	if (was_sent(st))
		return 0;
	pthread_mutex_lock(&sent_lock);
	if (sent_count == sent_room) {
		size_t room = sent_room ? 2 * sent_room : 64;
		void *more = realloc(sent, room * sizeof *sent);

		if (more) {
			sent = more;
			sent_room = room;
		} else
			r = -ENOMEM;
	}
	if (!r) {
		sent[sent_count].dev = st->st_dev;
		sent[sent_count++].ino = st->st_ino;
	}
	pthread_mutex_unlock(&sent_lock);
	return r;
}

/* The macro compares a length with a distance. */
#pragma clang diagnostic ignored "-Wsign-compare"

static int each_fd(struct msghdr *m, struct client *client, uint64_t cage, int (*one)(struct client *, uint64_t, int))
{
	int r = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h && !r; h = CMSG_NXTHDR(m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS || h->cmsg_len < CMSG_LEN(0))
			continue;
		for (size_t i = 0, n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int); i < n && !r; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
			r = one(client, cage, fd);
		}
	}
	return r;
}

#pragma clang diagnostic warning "-Wsign-compare"

static int sending(struct client *client, uint64_t cage, int fd)
{
	struct stat st;

	if (fd < 0 || !(fd_word(client, (uint32_t)fd) & INSIDE) || !identify(cage, (uint32_t)fd, &st))
		return 0;
	return remember(&st);
}

static int received(struct client *client, uint64_t cage, int fd)
{
	struct stat st;

	if (fd >= 0)
		fd_mark(client, (uint32_t)fd, identify(cage, (uint32_t)fd, &st) && was_sent(&st));
	return 0;
}

int64_t on_send(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	struct lind_message m;
	uint64_t length;
	int64_t r;

	if (!by_net && !by_path && !atomic_load(&client->owns))
		return on_fd(c);
	if ((r = lind_message_sent(&m, c->args[1])) < 0)
		return r;
	length = m.own.msg_name ? m.own.msg_namelen : 0;
	if (length && (r = socket_name(c, m.own.msg_name, &length, sizeof m.name)) > 0)
		adopt(c, 0);
	m.own.msg_namelen = length ? (socklen_t)length : m.own.msg_namelen;
	if (r >= 0 && !(r = each_fd(&m.own, client, c->target, sending))) {
		struct lind_call changed = *c;

		changed.args[1] = lind_mine(&m.own);
		/* The descriptors in it are numbers of whose socket it is. */
		r = fd_inside(c->args[0]) ? enter(&changed) : m.own.msg_controllen ? lind_forward(&changed) : go_past(&changed, 1);
	}
	lind_message_free(&m);
	return r;
}

int64_t on_receive(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	struct lind_message m;
	int64_t r;

	/* Also if nothing has been sent yet: it may be when this returns. */
	if ((r = lind_message_room(&m, c->args[1])) < 0)
		return r;
	making_begins(client);
	{
		struct lind_call changed = *c;

		changed.args[1] = lind_mine(&m.own);
		r = pass(&changed, fd_inside(c->args[0]));
	}
	if (r >= 0) {
		each_fd(&m.own, client, c->target, received);
		r = lind_message_give(&m, r, c->args[2].value);
	}
	making_ends(client);
	lind_message_free(&m);
	return r;
}

int64_t on_send_many(const struct lind_call *c)
{
	return lind_message_each(c, on_send);
}

int64_t on_receive_many(const struct lind_call *c)
{
	return lind_message_each(c, on_receive);
}

/* A socket turns out to be inside: so do its other descriptors in this client. */
void adopt(const struct lind_call *c, int arg)
{
	uint64_t cage = c->args[arg].cage;
	struct client *client = cage ? lind_client(cage) : NULL;
	struct stat this, other;

	if (!client || fd_inside(c->args[arg]) || !identify(cage, arg32(c, arg), &this))
		return;
	remember(&this);
	for (uint32_t fd = 0; fd < NUMBERS_LOOKED_AT; fd++)
		if (identify(cage, fd, &other) && other.st_dev == this.st_dev && other.st_ino == this.st_ino)
			fd_mark(client, fd, true);
	fd_mark(client, arg32(c, arg), true);
}
