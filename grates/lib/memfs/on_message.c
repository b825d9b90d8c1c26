/* Messages with descriptors of our files in them. travel.c decides as what they are sent, and
 * how they arrive. */
#include <lind/transfer.h>
#include <stdlib.h>
#include <unistd.h>
#include "memfs.h"

/* The header of a control message on x86-64. */
struct control {
	uint64_t length;
	int32_t level, type;
};

/* Copies of the grate's own, of what a message carries. */
struct copies {
	int *fds;
	unsigned count;
};

/* The next descriptor in control messages, or NULL. `at` is where the message begins, `i` the
 * number in it. The kernel refuses messages that are not whole. */
static char *next_fd(const struct msghdr *m, size_t *at, size_t *i)
{
	struct control head;

	for (; *at + sizeof head <= m->msg_controllen; *at += (head.length + 7) & ~7ull, *i = 0) {
		memcpy(&head, (char *)m->msg_control + *at, sizeof head);
		if (head.length < sizeof head || head.length > m->msg_controllen - *at)
			return NULL;
		if (head.level == SOL_SOCKET && head.type == SCM_RIGHTS &&
		    sizeof head + (*i + 1) * sizeof(int) <= head.length)
			return (char *)m->msg_control + *at + sizeof head + (*i)++ * sizeof(int);
	}
	return NULL;
}

/* The numbers in a message are those of the socket's cage. */
static bool has_ours(const struct msghdr *m, uint64_t cage)
{
	struct client *client = client_of(cage);
	bool found = false;
	size_t at = 0, i = 0;
	char *place;
	int fd;

	imfs_read_lock();
	while (!found && (place = next_fd(m, &at, &i))) {
		memcpy(&fd, place, sizeof fd);
		found = fd_of(client, (struct lind_arg){ (uint32_t)fd, cage });
	}
	imfs_read_unlock();
	return found;
}

static int64_t copy_of(struct lind_arg fd)
{
	struct lind_arg none = { 0, lind_self() };

	return lind_call(
	    SYS_fcntl, lind_self(), fd, (struct lind_arg){ F_DUPFD_CLOEXEC, lind_self() }, none, none, none, none);
}

/* Puts our numbers into the message instead of the client's: duplicates, or what travels for our
 * files. */
static int64_t copy_all(const struct msghdr *m, uint64_t cage, struct copies *copies)
{
	struct client *client = client_of(cage), *held = numbers_hold(client);
	size_t at = 0, i = 0;
	int64_t r = 0;
	char *place;
	int fd;

	while (r >= 0 && (place = next_fd(m, &at, &i))) {
		struct lind_arg number;
		bool ours;

		memcpy(&fd, place, sizeof fd);
		number = (struct lind_arg){ (uint32_t)fd, cage };
		imfs_read_lock();
		ours = fd_of(client, number);
		imfs_read_unlock();
		r = ours ? travel_begins(client, number) : copy_of(number);
		if (r >= 0) {
			copies->fds[copies->count++] = fd = (int)r;
			memcpy(place, &fd, sizeof fd);
		}
	}
	numbers_release(held);
	return r < 0 ? r : 0;
}

static int64_t send_ours(const struct lind_call *c, struct lind_message *m)
{
	struct copies copies = { malloc(m->own.msg_controllen), 0 };
	struct lind_call changed = *c;
	int64_t r = -ENOMEM, socket = -1;

	if (copies.fds && !(r = copy_all(&m->own, c->args[0].cage, &copies)) &&
	    (r = socket = copy_of(c->args[0])) >= 0) {
		changed.args[0] = (struct lind_arg){ (uint64_t)socket, lind_self() };
		changed.args[1] = lind_mine(&m->own);
		r = lind_forward(&changed);
	}
	if (socket >= 0)
		close((int)socket);
	while (copies.count)
		close(copies.fds[--copies.count]);
	free(copies.fds);
	travel_settle();
	return r;
}

/* Reads a message's header: whether it has control messages, and to whom it goes. */
static bool has_control(struct lind_arg at)
{
	struct msghdr m;

	return !lind_read(at, &m, sizeof m) && m.msg_control && m.msg_controllen;
}

static bool has_name(struct lind_arg at)
{
	struct msghdr m;
	uint16_t family;

	return !lind_read(at, &m, sizeof m) && m.msg_name && m.msg_namelen > sizeof family &&
	    !lind_read((struct lind_arg){ (uintptr_t)m.msg_name, at.cage }, &family, sizeof family) &&
	    family == AF_UNIX;
}

int64_t on_sendmsg(const struct lind_call *c)
{
	bool control = has_control(c->args[1]), named = has_name(c->args[1]);
	struct lind_message m;
	int64_t r;

	if (!control && !named)
		return lind_forward(c);
	if ((r = lind_message_sent(&m, c->args[1])) < 0)
		return r;
	/* The message that is passed on is the copy that was looked at. */
	if (named && m.own.msg_name && (r = address_send(c, m.name, &m.own.msg_namelen)) < 0)
		;
	/* If another thread puts one of our files at a number meanwhile, the receiver gets the kernel's
	 * file for it, with nothing behind it. */
	else if (control && has_ours(&m.own, c->args[0].cage))
		r = send_ours(c, &m);
	else
		r = named ? lind_message_pass(&m, c, c->args[2].value) : lind_forward(c);
	lind_message_free(&m);
	return r;
}

int64_t on_sendmmsg(const struct lind_call *c)
{
	return lind_message_each(c, on_sendmsg);
}

static void take_all(const struct lind_call *c, struct client *client, const struct msghdr *m)
{
	bool cloexec = lind_arg32(c, 2) & MSG_CMSG_CLOEXEC;
	size_t at = 0, i = 0;
	char *place;
	int fd;

	while ((place = next_fd(m, &at, &i))) {
		memcpy(&fd, place, sizeof fd);
		if (fd >= 0)
			travel_ends(c->target, client, (uint32_t)fd, cloexec);
	}
}

/* A child must not get a copy of the numbers before they are ours: where threads may fork
 * meanwhile nothing waits for a message while they are held. */
static int64_t receive(const struct lind_call *c, struct lind_message *m)
{
	struct client *client = client_of(c->target), *held;
	const struct msghdr fresh = m->own;
	struct lind_call changed = *c;
	bool waits = client->threaded && lind_message_blocks(c, c->args[2].value);
	int64_t r;

	changed.args[1] = lind_mine(&m->own);
	if (waits)
		changed.args[2].value |= MSG_DONTWAIT;
	do {
		m->own = fresh;
		if (waits && (r = lind_message_there(c, c->args[2].value)) < 0)
			return r;
		held = numbers_hold(client);
		if ((r = lind_forward(&changed)) >= 0)
			take_all(c, client, &m->own);
		numbers_release(held);
	} while (r == -EAGAIN && waits && !(lind_arg32(c, 2) & (MSG_ERRQUEUE | MSG_OOB)));
	travel_settle();
	return r;
}

int64_t on_recvmsg(const struct lind_call *c)
{
	struct lind_message m;
	int64_t r;

	if (!has_control(c->args[1]))
		return recvmsg_named(c);
	if ((r = lind_message_room(&m, c->args[1])) < 0)
		return r;
	if ((r = receive(c, &m)) >= 0) {
		if (m.own.msg_name)
			address_restore(lind_mine(m.name), sizeof m.name, lind_mine(&m.own.msg_namelen));
		r = lind_message_give(&m, r, c->args[2].value);
	}
	lind_message_free(&m);
	return r;
}

int64_t on_recvmmsg(const struct lind_call *c)
{
	return lind_message_each(c, on_recvmsg);
}
