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

/* What is done with each descriptor of a message. */
struct passing {
	struct client *client;
	uint64_t cage;
	int *copies;			/* ours, that go instead of the client's */
	size_t count;
};

/* The macro compares a length with a distance. */
#pragma clang diagnostic ignored "-Wsign-compare"

static int each_fd(struct msghdr *m, int (*one)(struct passing *, int *), struct passing *p)
{
	int r = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h && !r; h = CMSG_NXTHDR(m, h)) {
		if (h->cmsg_level != SOL_SOCKET || h->cmsg_type != SCM_RIGHTS || h->cmsg_len < CMSG_LEN(0))
			continue;
		for (size_t i = 0, n = (h->cmsg_len - CMSG_LEN(0)) / sizeof(int); i < n && !r; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(h) + i * sizeof fd, sizeof fd);
			r = one(p, &fd);
			memcpy(CMSG_DATA(h) + i * sizeof fd, &fd, sizeof fd);
		}
	}
	return r;
}

#pragma clang diagnostic warning "-Wsign-compare"

static int sending(struct passing *p, int *fd)
{
	struct stat st;

	if (*fd < 0 || !(fd_word(p->client, (uint32_t)*fd) & INSIDE) || !identify(p->cage, (uint32_t)*fd, &st))
		return 0;
	return remember(&st);
}

/* The same where threads may change the numbers. */
static int sending_copy(struct passing *p, int *fd)
{
	struct lind_arg copy;
	struct stat st;
	bool inside;
	int r = hold(p->client, (struct lind_arg){ (uint32_t)*fd, p->cage }, &copy, &inside);

	if (r)
		return r;
	*fd = p->copies[p->count++] = (int)copy.value;
	return inside && identify(lind_self(), copy.value, &st) ? remember(&st) : 0;
}

static int received(struct passing *p, int *fd)
{
	struct stat st;

	if (*fd >= 0)
		fd_mark(p->client, (uint32_t)*fd, identify(p->cage, (uint32_t)*fd, &st) && was_sent(&st));
	return 0;
}

/* What is sent is numbers of whose socket it is: with a copy of the socket go copies of them. */
static int64_t send_copies(const struct lind_call *c, struct lind_arg socket, struct lind_message *m, struct passing *p)
{
	struct lind_call changed = *c;
	int64_t r;

	if (!(p->copies = malloc(m->own.msg_controllen + sizeof *p->copies)))
		return -ENOMEM;
	changed.args[0] = socket;
	if (!(r = each_fd(&m->own, sending_copy, p)))
		r = lind_forward(&changed);
	while (p->count)
		release((struct lind_arg){ (uint32_t)p->copies[--p->count], lind_self() });
	free(p->copies);
	return r;
}

/* Whether what is at the socket's number has to be taken hold of, as it may be another file when the call is made. */
static bool numbers_change(const struct lind_call *c, const struct client *client)
{
	return atomic_load(&client->threads) && c->args[0].cage == c->target && !fd_inside(c->args[0]);
}

/* The message is in our memory, and its name is decided on. */
static int64_t send_it(const struct lind_call *c, struct lind_message *m, struct passing *p)
{
	bool inside = fd_inside(c->args[0]);
	struct lind_arg held = { 0 };
	int64_t r = 0;

	if (!m->own.msg_controllen)
		return inside ? enter(c) : go_past(c, 1);
	if (numbers_change(c, p->client) && (r = hold(p->client, c->args[0], &held, &inside)))
		return r;
	if (held.cage && !inside)
		r = send_copies(c, held, m, p);
	else if (!(r = each_fd(&m->own, sending, p)))
		r = pass(c, inside);
	release(held);
	return r;
}

int64_t on_send(const struct lind_call *c)
{
	struct passing p = { .client = lind_client(c->target), .cage = c->target };
	struct lind_call changed = *c;
	struct lind_message m;
	uint64_t length;
	int64_t r;

	if (!by_net && !by_path && !atomic_load(&p.client->owns))
		return on_fd(c);
	if ((r = lind_message_sent(&m, c->args[1])) < 0)
		return r;
	length = m.own.msg_name ? m.own.msg_namelen : 0;
	if (length && (r = socket_name(c, m.own.msg_name, &length, sizeof m.name)) > 0)
		adopt(c, 0);
	m.own.msg_namelen = length ? (socklen_t)length : m.own.msg_namelen;
	changed.args[1] = lind_mine(&m.own);
	if (r >= 0)
		r = send_it(&changed, &m, &p);
	lind_message_free(&m);
	return r;
}

/* What arrives gets numbers of the client's, whoever's the socket's is. */
int64_t on_receive(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	struct passing p = { .client = client, .cage = c->target };
	struct lind_arg held = { 0 };
	struct lind_call changed = *c;
	bool inside = fd_inside(c->args[0]);
	struct lind_message m;
	int64_t r;

	/* Also if nothing has been sent yet: it may be when this returns. */
	if ((r = lind_message_room(&m, c->args[1])) < 0)
		return r;
	changed.args[1] = lind_mine(&m.own);
	if (numbers_change(c, client) && !(r = hold(client, c->args[0], &held, &inside)) && !inside)
		changed.args[0] = held;
	making_begins(client);
	if (!r && (r = pass(&changed, inside)) >= 0) {
		each_fd(&m.own, received, &p);
		r = lind_message_give(&m, r, c->args[2].value);
	}
	making_ends(client);
	release(held);
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
