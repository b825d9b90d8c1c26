/*
 * Descriptors with a state that travel in messages. A message is copied once, and the copy is what
 * is sent; one that is received comes to the grate first. So what the client's memory holds
 * meanwhile does not matter.
 *
 * Which of the files on their way has arrived is told by device, inode and access mode. Files that
 * agree in all three, one with a state and one without, may arrive with the state exchanged:
 * whoever gets both gets no more than whoever got the one without. Blocking calls become calls that
 * do not block and waits in between, since the client's descriptors stand still while they are
 * looked at.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <lind/transfer.h>
#include "follow.h"

/* More states than this on their way at once are refused, as Linux refuses too many files:
 * ETOOMANYREFS. */
#define MAX_TRAVELLING 4096

/* More than this of one message is not moved at once: streams go on with the rest, no datagram
 * is as long. */
#define MAX_DATA    (1u << 20)
#define MAX_CONTROL 20480u
#define MAX_FILES   253

/* libc's struct msghdr; control messages are x86-64's: a 64-bit length, level, type. */
struct message {
	uint32_t name, namelen, iov, iovlen, control, controllen;
	int32_t flags;
};

struct control {
	uint64_t length;
	int32_t level, type;
};

struct travelling {
	struct lind_fd_state *state;
	uint32_t mode;
	struct travelling *next;
};

/* Where a message is copied to: `iov` are the client's pieces, `data` is all of them. */
struct copy {
	struct message m, theirs;
	struct iovec iov[IOV_MAX], whole;
	char name[128];
	char *data, *control;
	size_t size;
};

lind_handle_fn *own_sendmsg, *own_recvmsg;

static struct travelling *first, **last = &first;
static unsigned count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The flags that F_SETFL cannot change. */
static uint32_t mode_of(uint64_t cage, int32_t fd)
{
	int64_t flags = lind_call_plain(SYS_fcntl, cage, (uint64_t)fd, F_GETFL, 0, 0);

	return flags < 0 ? 0 : (uint32_t)flags & (O_PATH | O_ACCMODE);
}

static int depart(struct lind_fd_state *state, uint32_t mode)
{
	struct travelling *t = malloc(sizeof *t);
	int r = 0;

	pthread_mutex_lock(&lock);
	if (!t || count == MAX_TRAVELLING) {
		r = -ETOOMANYREFS;
	} else {
		__atomic_fetch_add(&state->refs, 1, __ATOMIC_RELAXED);
		*t = (struct travelling){ state, mode, NULL };
		*last = t;
		last = &t->next;
		count++;
	}
	pthread_mutex_unlock(&lock);
	if (r)
		free(t);
	return r;
}

static void take_out(struct travelling **at)
{
	struct travelling *t = *at;

	if (!(*at = t->next))
		last = at;
	count--;
	free(t);
}

static void turn_back(struct lind_fd_state *state)
{
	pthread_mutex_lock(&lock);
	for (struct travelling **at = &first; *at; at = &(*at)->next)
		if ((*at)->state == state) {
			take_out(at);
			break;
		}
	pthread_mutex_unlock(&lock);
	lind_fd_put(state);
}

/* The state of a file that arrived, with a reference; NULL if it is none of those on their way.
 * If it may be one of several, it gets the strictest state, and so do the others when they come:
 * the weakest is taken off the list. A file that was only peeked at is still to come. */
static struct lind_fd_state *arrive(uint64_t dev, uint64_t ino, uint32_t mode, int peeked)
{
	struct travelling **strictest = NULL, **weakest = NULL;
	struct lind_fd_state *state = NULL, *gone = NULL;

	pthread_mutex_lock(&lock);
	for (struct travelling **at = &first; *at; at = &(*at)->next) {
		struct lind_fd_state *one = (*at)->state;

		if (one->dev != dev || one->ino != ino || (*at)->mode != mode)
			continue;
		if (!strictest ||
		    (fd_stricter && one != (*strictest)->state && fd_stricter((*strictest)->state, one) == one))
			strictest = at;
		if (!weakest || (fd_stricter && one != (*weakest)->state && fd_stricter((*weakest)->state, one) != one))
			weakest = at;
	}
	if (strictest) {
		state = (*strictest)->state;
		__atomic_fetch_add(&state->refs, 1, __ATOMIC_RELAXED);
		if (!peeked) {
			gone = (*weakest)->state;
			take_out(weakest);
		}
	}
	pthread_mutex_unlock(&lock);
	lind_fd_put(gone);
	return state;
}

static void release(struct copy *k)
{
	if (k) {
		free(k->data);
		free(k->control);
	}
	free(k);
}

/* Reads the header and the pieces. The copy points into our memory, and has room for what the
 * pieces hold. */
static int prepare(struct lind_arg at, struct copy **out)
{
	struct copy *k = malloc(sizeof *k);
	uint64_t total = 0;
	int r;

	if (!(*out = k))
		return -ENOMEM;
	k->data = k->control = NULL;
	if ((r = lind_read(at, &k->theirs, sizeof k->theirs)))
		return r;
	k->m = k->theirs;
	if (k->m.iovlen > IOV_MAX)
		return -EMSGSIZE;
	if ((int32_t)k->m.namelen < 0)
		return -EINVAL;
	if ((r = lind_read((struct lind_arg){ k->m.iov, at.cage }, k->iov, k->m.iovlen * sizeof *k->iov)))
		return r;
	for (uint32_t i = 0; i < k->m.iovlen; i++)
		total += k->iov[i].iov_len;
	if (total > INT_MAX)
		return -EINVAL;
	k->size = total < MAX_DATA ? (size_t)total : MAX_DATA;
	k->m.namelen = k->m.name && k->m.namelen < sizeof k->name ? k->m.namelen : k->m.name ? sizeof k->name : 0;
	k->m.controllen = k->m.control ? k->m.controllen : 0;
	if (k->m.controllen > MAX_CONTROL)
		return -ENOBUFS;
	if (!(k->data = malloc(k->size + 1)) || !(k->control = calloc(1, k->m.controllen + 1)))
		return -ENOMEM;
	k->whole = (struct iovec){ k->data, k->size };
	k->m.iov = (uint32_t)(uintptr_t)&k->whole;
	k->m.iovlen = 1;
	k->m.name = k->m.name ? (uint32_t)(uintptr_t)k->name : 0;
	k->m.control = k->m.controllen ? (uint32_t)(uintptr_t)k->control : 0;
	return 0;
}

/* The descriptors in control messages, in order. They stop where a message is not whole. */
static unsigned descriptors(const struct copy *k, size_t length, int32_t *fds)
{
	unsigned n = 0;

	for (size_t at = 0; at + sizeof(struct control) <= length;) {
		struct control head;

		memcpy(&head, k->control + at, sizeof head);
		if (head.length < sizeof head || head.length > length - at)
			break;
		if (head.level == SOL_SOCKET && head.type == SCM_RIGHTS)
			for (size_t i = sizeof head; i + 4 <= head.length && n < MAX_FILES; i += 4)
				memcpy(&fds[n++], k->control + at + i, 4);
		at += (head.length + 7) & ~7ull;
	}
	return n;
}

static int64_t pass(lind_handle_fn *own, uint32_t nr, const struct lind_call *c, const struct copy *k, uint32_t flags)
{
	struct lind_call copied = { .nr = nr,
		.caller = c->caller,
		.target = c->target,
		.args = { c->args[0], lind_mine(&k->m), { flags, c->target }, { 0, c->target }, { 0, c->target },
		    { 0, c->target } } };

	return lind_outcome_(own, &copied);
}

/* One try. The descriptors do not change while the kernel looks. */
static int64_t try_send(const struct lind_call *c, struct fd_table *t, const struct copy *k, uint32_t flags)
{
	struct lind_fd_state *states[MAX_FILES];
	int32_t fds[MAX_FILES];
	unsigned n = descriptors(k, k->m.controllen, fds), with = 0;
	int64_t r = 0;

	if (n)
		fd_table_freeze(t);
	for (unsigned i = 0; i < n && !r; i++) {
		struct lind_fd_state *state = fd_table_get(t, (uint32_t)fds[i], false).state;

		if (!state)
			continue;
		if (!(r = depart(state, mode_of(c->args[0].cage, fds[i]))))
			states[with++] = state;
		else
			lind_fd_put(state);
	}
	if (!r)
		r = pass(own_sendmsg, SYS_sendmsg, c, k, flags);
	if (n)
		fd_table_thaw(t);
	for (unsigned i = 0; i < with; i++) {
		if (r < 0)
			turn_back(states[i]);
		lind_fd_put(states[i]);
	}
	return r;
}

static int64_t send_message(const struct lind_call *c, struct lind_arg at, uint32_t flags)
{
	struct fd_table *t = fd_table_of(c->args[0].cage); /* the numbers are of the cage whose socket it is */
	struct copy *k;
	int64_t r = prepare(at, &k);
	char *to;
	int32_t fds[MAX_FILES];

	if (!r && !t)
		r = -ESRCH;
	if (!r && k->m.namelen)
		r = lind_read((struct lind_arg){ k->theirs.name, at.cage }, k->name, k->m.namelen);
	if (!r && k->m.controllen)
		r = lind_read((struct lind_arg){ k->theirs.control, at.cage }, k->control, k->m.controllen);
	to = r ? NULL : k->data;
	for (uint32_t i = 0; !r && i < k->theirs.iovlen && to < k->data + k->size; i++) {
		size_t left = (size_t)(k->data + k->size - to), n = k->iov[i].iov_len < left ? k->iov[i].iov_len : left;

		r = lind_read((struct lind_arg){ (uintptr_t)k->iov[i].iov_base, at.cage }, to, n);
		to += n;
	}
	if (!r && !descriptors(k, k->m.controllen, fds)) {
		r = pass(own_sendmsg, SYS_sendmsg, c, k, flags);
	} else if (!r) {
		while ((r = try_send(c, t, k, flags | MSG_DONTWAIT)) == -EAGAIN && lind_message_blocks(c, flags))
			if ((r = lind_message_wait(c)) < 0)
				break;
	}
	release(k);
	return r;
}

/* The kernel has made the descriptors; nobody finds them without their state meanwhile. */
static int settle(uint64_t cage, struct fd_table *t, const struct copy *k, uint32_t flags)
{
	int32_t fds[MAX_FILES];
	unsigned n = descriptors(k, k->m.controllen, fds);
	int r = 0;

	for (unsigned i = 0; i < n; i++) {
		uint64_t dev, ino;
		struct lind_fd_state *state = fd_identity(cage, (uint32_t)fds[i], &dev, &ino)
		    ? NULL
		    : arrive(dev, ino, mode_of(cage, fds[i]), flags & MSG_PEEK);

		if (fd_table_set(t, (uint32_t)fds[i], state, flags & MSG_CMSG_CLOEXEC))
			r = -ENOMEM;
		lind_fd_put(state);
	}
	for (unsigned i = 0; r && i < n; i++)
		lind_call_plain(SYS_close, cage, (uint64_t)fds[i], 0, 0, 0);
	return r;
}

static int64_t try_receive(const struct lind_call *c, struct fd_table *t, struct copy *k, uint32_t flags)
{
	uint32_t namelen = k->m.namelen, controllen = k->m.controllen;
	int64_t r;
	int settled = 0;

	fd_table_grow(t);
	r = pass(own_recvmsg, SYS_recvmsg, c, k, flags | MSG_DONTWAIT);
	if (r >= 0 && k->m.controllen > controllen)
		k->m.controllen = controllen;
	if (r >= 0)
		settled = settle(c->target, t, k, flags);
	fd_table_grown(t);
	if (r < 0) {
		k->m.namelen = namelen;
		k->m.controllen = controllen;
	}
	return settled ? settled : r;
}

/* Passes the received message to the client. */
static int64_t hand_over(struct lind_arg at, struct copy *k, int64_t got)
{
	size_t left = got < (int64_t)k->size ? (size_t)got : k->size;
	struct message m = k->theirs;
	const char *from = k->data;
	uint32_t named = k->m.namelen < sizeof k->name ? k->m.namelen : sizeof k->name;
	int r = 0;

	for (uint32_t i = 0; !r && i < k->theirs.iovlen && left; i++) {
		size_t n = k->iov[i].iov_len < left ? k->iov[i].iov_len : left;

		r = lind_write((struct lind_arg){ (uintptr_t)k->iov[i].iov_base, at.cage }, from, n);
		from += n;
		left -= n;
	}
	if (!r && k->m.name)
		r = lind_write((struct lind_arg){ m.name, at.cage }, k->name, named < m.namelen ? named : m.namelen);
	if (!r && k->m.controllen)
		r = lind_write((struct lind_arg){ m.control, at.cage }, k->control, k->m.controllen);
	m.namelen = k->m.name ? k->m.namelen : m.namelen;
	m.controllen = k->m.controllen;
	m.flags = k->m.flags;
	if (!r)
		r = lind_write(at, &m, sizeof m);
	return r ? r : got;
}

static int64_t receive_message(const struct lind_call *c, struct lind_arg at, uint32_t flags)
{
	struct fd_table *t = fd_table_of(c->target);
	struct copy *k;
	int64_t r = prepare(at, &k);

	if (!r && !t)
		r = -ESRCH;
	while (!r) {
		r = try_receive(c, t, k, flags);
		if (r != -EAGAIN || flags & (MSG_DONTWAIT | MSG_ERRQUEUE | MSG_OOB)) {
			r = r < 0 ? r : hand_over(at, k, r);
			break;
		}
		/* Nonblocking sockets and those with a time limit say EAGAIN here. */
		r = lind_message_there(c, flags);
		r = r < 0 ? r : 0;
	}
	release(k);
	return r;
}

int64_t fds_sendmsg(const struct lind_call *c)
{
	return send_message(c, c->args[1], lind_arg32(c, 2));
}

int64_t fds_recvmsg(const struct lind_call *c)
{
	return receive_message(c, c->args[1], lind_arg32(c, 2));
}

/* One message at a time. How many were sent; an error only if it was the first. */
static int64_t each(
    const struct lind_call *c, int64_t (*one)(const struct lind_call *, struct lind_arg, uint32_t), int64_t end)
{
	uint32_t n = lind_arg32(c, 2), flags = lind_arg32(c, 3), done;
	int64_t r = 0;

	n = n < IOV_MAX ? n : IOV_MAX;
	for (done = 0; done < n; done++) {
		struct lind_arg at = lind_at(c->args[1], done * (sizeof(struct message) + 4));
		uint32_t wait = done && flags & MSG_WAITFORONE ? MSG_DONTWAIT : 0, length;

		if ((r = one(c, at, (flags & ~(uint32_t)MSG_WAITFORONE) | wait)) < 0)
			break;
		length = (uint32_t)r;
		if ((r = lind_write(lind_at(at, sizeof(struct message)), &length, sizeof length)) < 0)
			break;
		if (end >= 0 && lind_now_ns() >= end) {
			done++;
			break;
		}
	}
	return done ? (int64_t)done : r;
}

int64_t fds_sendmmsg(const struct lind_call *c)
{
	return each(c, send_message, -1);
}

/* The time is looked at after each message, as on Linux. */
int64_t fds_recvmmsg(const struct lind_call *c)
{
	struct {
		int64_t sec, nsec;
	} limit;
	int64_t end = -1, now = lind_now_ns(), left, r;

	if (c->args[4].value) {
		if ((r = lind_read(c->args[4], &limit, sizeof limit)))
			return r;
		if (limit.sec < 0 || limit.nsec < 0 || limit.nsec >= 1000000000)
			return -EINVAL;
		end = limit.sec < INT64_MAX / 4000000000 ? now + limit.sec * 1000000000 + limit.nsec : INT64_MAX;
	}
	r = each(c, receive_message, end);
	if (end >= 0 && r > 0) {
		left = end - lind_now_ns();
		left = left < 0 ? 0 : left;
		limit.sec = left / 1000000000;
		limit.nsec = left % 1000000000;
		lind_write(c->args[4], &limit, sizeof limit);
	}
	return r;
}
