/*
 * Messages, and descriptors in them. A descriptor that was sent while it was inside is inside where
 * it arrives: sent.c recognises it. A message with a descriptor from inside enters, whatever its
 * socket. Once one was sent, receiving calls enter too: the grates inside may know more of the
 * descriptor than the kernel does.
 *
 * The numbers in a message are those of the socket's cage. If its threads may change them, a
 * message past the grates inside is sent with our copies. The grates inside do not know the copies;
 * so a message that enters is sent while no thread may let go of a number, and without waiting.
 */
#include <lind/transfer.h>
#include <stdlib.h>
#include <sys/stat.h>
#include "calls.h"
#include "fds.h"
#include "hold.h"
#include "kinds.h"
#include "messages.h"
#include "net.h"
#include "sent.h"
#include "words.h"

#define TURNED (-0x10000) /* no errno: what was outside a moment ago is inside */

/* The state while the descriptors of a message are handled. */
struct passing {
	struct client *client;
	uint64_t cage;
	bool frozen;   /* nobody lets go of its numbers meanwhile */
	bool inside;   /* one of them is */
	uint32_t since;
	int *copies;   /* ours, that go instead of the client's */
	size_t count;
};

/* The macro compares a length with a distance. */
#pragma clang diagnostic ignored "-Wsign-compare"

static int each_fd(struct msghdr *m, int (*one)(struct passing *, int *), struct passing *p)
{
	int r = 0;

	for (struct cmsghdr *h = CMSG_FIRSTHDR(m); h && !r; h = CMSG_NXTHDR(m, h)) {
		if (h->cmsg_len > m->msg_controllen - (size_t)((char *)h - (char *)m->msg_control))
			return -EINVAL;
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

/* Remembers it, if it is inside. */
static int sending(struct passing *p, int *fd)
{
	struct lind_arg number = { (uint32_t)*fd, p->cage };
	struct stat st;
	int inside = p->frozen ? look_at_number(p->client, number) : fd_inside(number), r;

	if (inside <= 0)
		return inside;
	p->inside = true;
	if (!identify(number, &st))
		return -EBADF;
	return (r = remember(number, &st)) < 0 ? r : 0;
}

static int sending_copy(struct passing *p, int *fd)
{
	struct lind_arg copy;
	bool inside;
	int r = hold(p->client, (struct lind_arg){ (uint32_t)*fd, p->cage }, &copy, &inside);

	if (r)
		return r;
	*fd = p->copies[p->count++] = (int)copy.value;
	return inside ? TURNED : 0;
}

static int received(struct passing *p, int *fd)
{
	struct lind_arg number = { (uint32_t)*fd, p->cage };
	struct stat st;

	if (*fd < 0)
		return 0;
	if (anything_sent() && (!identify(number, &st) || was_sent(number, &st)))
		fd_mark(p->client, number.value);
	else
		fd_outside_of_several(p->client, number.value, p->since);
	return 0;
}

/* All descriptors are outside: copies of them go with a copy of the socket. TURNED if they are
 * not any more. */
static int64_t send_copies(const struct lind_call *c, struct lind_message *m, struct passing *p)
{
	void *numbers = malloc(m->own.msg_controllen);
	struct lind_call changed = *c;
	bool inside;
	int64_t r = -ENOMEM;

	if (numbers && (p->copies = malloc(m->own.msg_controllen + sizeof *p->copies))) {
		memcpy(numbers, m->own.msg_control, m->own.msg_controllen);
		if (!(r = hold(p->client, c->args[0], &changed.args[0], &inside))) {
			if (!(r = inside ? TURNED : each_fd(&m->own, sending_copy, p)))
				r = lind_forward(&changed);
			release(changed.args[0]);
		}
		memcpy(m->own.msg_control, numbers, m->own.msg_controllen);
	}
	while (p->count)
		release((struct lind_arg){ (uint32_t)p->copies[--p->count], lind_self() });
	free(p->copies);
	free(numbers);
	p->copies = NULL;
	return r;
}

/* Sends the rest of a message when a stream has taken only the beginning, with the descriptors. */
static int64_t send_rest(const struct lind_call *c, struct lind_message *m, int64_t sent)
{
	int64_t r;

	m->piece.iov_base = (char *)m->piece.iov_base + sent;
	m->piece.iov_len -= (size_t)sent;
	m->own.msg_controllen = 0;
	r = enter(c);
	m->piece.iov_base = (char *)m->piece.iov_base - sent;
	return r > 0 ? sent + r : sent;
}

/* One try, where threads may change the numbers. */
static int64_t try_frozen(const struct lind_call *c, struct lind_message *m, struct passing *p)
{
	struct lind_call quick = *c;
	int64_t r = fds_freeze(p->client);
	int socket;

	if (r)
		return r;
	p->inside = false;
	quick.args[2].value |= MSG_DONTWAIT;
	if ((socket = look_at_number(p->client, c->args[0])) < 0)
		r = socket;
	else if (!(r = each_fd(&m->own, sending, p)) && (socket || p->inside)) {
		p->inside = true;
		r = enter(&quick);
	}
	fds_thaw(p->client);
	return r;
}

static int64_t send_while_numbers_change(const struct lind_call *c, struct lind_message *m, struct passing *p)
{
	bool waits = lind_message_blocks(c, c->args[2].value);
	int64_t r;

	for (;;) {
		r = try_frozen(c, m, p);
		if (!r && !p->inside && (r = send_copies(c, m, p)) == TURNED)
			continue;
		if (r != -EAGAIN || !p->inside || !waits)
			break;
		if ((r = lind_message_wait(c)) < 0)
			return r;
	}
	return p->inside && waits && r > 0 && (uint64_t)r < m->piece.iov_len ? send_rest(c, m, r) : r;
}

/* The message is in our memory, and its name is decided on. */
static int64_t send_it(const struct lind_call *c, struct lind_message *m)
{
	uint64_t cage = c->args[0].cage;
	struct passing p = { .client = cage ? lind_client(cage) : NULL, .cage = cage };
	bool inside = fd_inside(c->args[0]);
	int r;

	if (!m->own.msg_controllen)
		return inside ? enter(c) : go_past(c, 1);
	p.frozen = p.client && atomic_load(&p.client->threads);
	if (p.frozen)
		return send_while_numbers_change(c, m, &p);
	r = each_fd(&m->own, sending, &p);
	return r < 0 ? r : pass(c, inside || p.inside);
}

int64_t on_send(const struct lind_call *c)
{
	struct client *client = c->args[0].cage ? lind_client(c->args[0].cage) : NULL;
	struct lind_call changed = *c;
	struct lind_message m;
	uint64_t length;
	int64_t r;

	if (!by_net && !by_path && !by_property && client && !atomic_load(&client->owns))
		return on_fd(c);
	if ((r = lind_message_sent(&m, c->args[1])) < 0)
		return r;
	length = m.own.msg_name ? m.own.msg_namelen : 0;
	if (length && (r = socket_name(c, m.own.msg_name, &length, sizeof m.name)) > 0)
		adopt(c, 0);
	m.own.msg_namelen = length ? (socklen_t)length : m.own.msg_namelen;
	changed.args[1] = lind_mine(&m.own);
	if (r >= 0)
		r = send_it(&changed, &m);
	lind_message_free(&m);
	return r;
}

/* Whether it enters, and by which descriptor it goes if not: `held`, if that is one. */
static int64_t where_to_receive(
    const struct lind_call *c, struct client *client, bool control, struct lind_arg *held, bool *inside)
{
	bool numbers_change = atomic_load(&client->threads) && c->args[0].cage == c->target;
	struct lind_call waits = *c;
	int64_t r;

	*inside = fd_inside(c->args[0]);
	if (*inside)
		return 0;
	if (numbers_change && (r = hold(client, c->args[0], held, inside)))
		return r;
	if (held->cage)
		waits.args[0] = *held;
	if (*inside || !control || !lind_handled_inside(0, SYS_recvmsg))
		return 0;
	/* The descriptors of a message were sent before the message is there. */
	if (!anything_sent() && (r = lind_message_there(&waits, c->args[2].value)) < 0)
		return r;
	*inside = anything_sent();
	return 0;
}

/* Descriptors that arrive get numbers of the client, whichever cage the socket's number belongs
 * to. */
int64_t on_receive(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	struct passing p = { .client = client, .cage = c->target };
	struct lind_arg held = { 0 };
	struct lind_call changed = *c;
	struct lind_message m;
	bool inside;
	int64_t r;

	/* Also if nothing has been sent yet: it may be when this returns. */
	if ((r = lind_message_room(&m, c->args[1])) < 0)
		return r;
	changed.args[1] = lind_mine(&m.own);
	r = where_to_receive(c, client, m.own.msg_controllen, &held, &inside);
	if (held.cage && !inside)
		changed.args[0] = held;
	p.since = fd_since(client);
	waiting_begins(client);
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
