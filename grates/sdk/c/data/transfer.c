/* Data in pieces, copied once. */
#include <errno.h>
#include <fcntl.h>
#include <lind/transfer.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Linux's UIO_MAXIOV, and more control messages than it takes. */
#define MOST_PIECES  1024
#define MOST_CONTROL (1u << 17)

int lind_vector_read(struct lind_vector *v, struct lind_arg iov, uint64_t count)
{
	int r;

	*v = (struct lind_vector){ .cage = iov.cage };
	if (count > MOST_PIECES)
		return -EINVAL;
	if (!count)
		return 0;
	if (!(v->pieces = malloc((size_t)count * sizeof *v->pieces)))
		return -ENOMEM;
	if ((r = lind_read(iov, v->pieces, (size_t)count * sizeof *v->pieces)) < 0) {
		lind_vector_free(v);
		return r;
	}
	v->count = (unsigned)count;
	for (unsigned i = 0; i < v->count; i++)
		v->total += v->pieces[i].iov_len;
	if (v->total > LIND_TRANSFER_MAX)
		v->total = LIND_TRANSFER_MAX;
	return 0;
}

static int copy(const struct lind_vector *v, char *here, size_t length, int gather)
{
	for (unsigned i = 0; i < v->count && length; i++) {
		struct lind_arg there = { (uintptr_t)v->pieces[i].iov_base, v->cage };
		size_t n = v->pieces[i].iov_len < length ? v->pieces[i].iov_len : length;

		if ((gather ? lind_read(there, here, n) : lind_write(there, here, n)) < 0)
			return -EFAULT;
		here += n;
		length -= n;
	}
	return 0;
}

int lind_vector_gather(const struct lind_vector *v, void *to, size_t length)
{
	return copy(v, to, length, 1);
}

int lind_vector_scatter(const struct lind_vector *v, const void *from, size_t length)
{
	return copy(v, (char *)from, length, 0);
}

void lind_vector_free(struct lind_vector *v)
{
	free(v->pieces);
	v->pieces = NULL;
}

static struct lind_arg of_client(const struct lind_message *m, const void *address)
{
	return (struct lind_arg){ (uintptr_t)address, m->at.cage };
}

/* The header and the pieces, and room for data and control messages. */
static int prepare(struct lind_message *m, struct lind_arg at)
{
	const struct msghdr *client = &m->client;
	int r;

	memset(m, 0, sizeof *m);
	m->at = at;
	if ((r = lind_read(at, &m->client, sizeof m->client)) < 0)
		return r;
	if ((unsigned)client->msg_iovlen > MOST_PIECES)
		return -EMSGSIZE;
	if (client->msg_name && client->msg_namelen > (socklen_t)INT32_MAX)
		return -EINVAL;
	if ((r = lind_vector_read(&m->where, of_client(m, client->msg_iov), (unsigned)client->msg_iovlen)) < 0)
		return r;
	if (client->msg_control && client->msg_controllen)
		m->own.msg_controllen = client->msg_controllen < MOST_CONTROL ? client->msg_controllen : MOST_CONTROL;
	m->piece = (struct iovec){ malloc(m->where.total ? m->where.total : 1), m->where.total };
	m->own.msg_iov = &m->piece;
	m->own.msg_iovlen = 1;
	if (m->own.msg_controllen)
		m->own.msg_control = calloc(1, m->own.msg_controllen);
	if (!m->piece.iov_base || (m->own.msg_controllen && !m->own.msg_control)) {
		lind_message_free(m);
		return -ENOMEM;
	}
	if (client->msg_name) {
		m->own.msg_name = m->name;
		m->own.msg_namelen = client->msg_namelen < sizeof m->name ? client->msg_namelen : sizeof m->name;
	}
	return 0;
}

int lind_message_sent(struct lind_message *m, struct lind_arg at)
{
	int r = prepare(m, at);

	if (r < 0)
		return r;
	if (m->client.msg_control && m->client.msg_controllen > MOST_CONTROL)
		r = -ENOBUFS;
	else if ((r = lind_vector_gather(&m->where, m->piece.iov_base, m->where.total)) == 0 &&
	    (r = lind_read(of_client(m, m->client.msg_control), m->own.msg_control, m->own.msg_controllen)) == 0)
		r = lind_read(of_client(m, m->client.msg_name), m->name, m->own.msg_namelen);
	if (r < 0)
		lind_message_free(m);
	return r;
}

int lind_message_room(struct lind_message *m, struct lind_arg at)
{
	return prepare(m, at);
}

int64_t lind_message_pass(struct lind_message *m, const struct lind_call *c, uint64_t flags)
{
	struct lind_arg none = { 0, c->target };

	return lind_call(
	    c->nr, c->target, c->args[0], lind_mine(&m->own), (struct lind_arg){ flags, c->target }, none, none, none);
}

int64_t lind_message_give(const struct lind_message *m, int64_t received, uint64_t flags)
{
	const struct msghdr *own = &m->own;
	struct msghdr back = m->client;
	size_t bytes, name;

	if (received < 0)
		return received;
	/* With MSG_TRUNC the result may be more than there was room for. */
	bytes = (uint64_t)received < m->piece.iov_len ? (size_t)received : m->piece.iov_len;
	name = own->msg_namelen < m->client.msg_namelen ? own->msg_namelen : m->client.msg_namelen;
	name = name < sizeof m->name ? name : sizeof m->name;
	if (m->client.msg_name)
		back.msg_namelen = own->msg_namelen;
	back.msg_controllen = own->msg_control ? own->msg_controllen : 0;
	back.msg_flags = own->msg_flags | (int)(flags & MSG_CMSG_CLOEXEC);
	if (lind_vector_scatter(&m->where, m->piece.iov_base, bytes) < 0 ||
	    (m->client.msg_name && lind_write(of_client(m, m->client.msg_name), m->name, name) < 0) ||
	    (own->msg_control &&
		lind_write(of_client(m, m->client.msg_control), own->msg_control, own->msg_controllen) < 0) ||
	    lind_write(m->at, &back, sizeof back) < 0)
		return -EFAULT;
	return received;
}

void lind_message_free(struct lind_message *m)
{
	lind_vector_free(&m->where);
	free(m->piece.iov_base);
	free(m->own.msg_control);
	m->piece.iov_base = m->own.msg_control = NULL;
}

int lind_message_blocks(const struct lind_call *c, uint64_t flags)
{
	int64_t status;

	if (flags & MSG_DONTWAIT)
		return 0;
	status = lind_call_plain(SYS_fcntl, c->args[0].cage, c->args[0].value, 3 /* F_GETFL */, 0, 0);
	return status < 0 || !(status & O_NONBLOCK);
}

static int64_t poll_out(const struct lind_call *c, int32_t fd, int32_t timeout)
{
	struct {
		int32_t fd;
		int16_t events, revents;
	} one = { fd, POLLOUT, 0 };
	struct lind_arg none = { 0, c->target };

	return lind_call(SYS_poll, c->target, lind_mine(&one), (struct lind_arg){ 1, c->target },
	    (struct lind_arg){ (uint64_t)(int64_t)timeout, c->target }, none, none, none);
}

/* As the client's own wait: its signals end it. Numbers in a set are those of the cage that the
 * set is in, so it is a number of ours. */
int64_t lind_message_wait(const struct lind_call *c)
{
	static const struct {
		int64_t sec, nsec;
	} moment = { 0, 1000000 };
	struct lind_arg none = { 0, lind_self() };
	int64_t r,
	    fd = lind_call(SYS_fcntl, lind_self(), c->args[0],
		(struct lind_arg){ 1030 /* F_DUPFD_CLOEXEC */, lind_self() }, none, none, none, none);

	if (fd < 0)
		return fd;
	if (!(r = poll_out(c, (int32_t)fd, 0)))
		r = poll_out(c, (int32_t)fd, -1);
	else if (r > 0)
		/* A socket without a peer always takes; the one that the message is for does not, and nobody
		 * says when it does. */
		r = lind_call(SYS_nanosleep, c->target, lind_mine(&moment), none, none, none, none, none);
	lind_call_plain(SYS_close, lind_self(), (uint64_t)fd, 0, 0, 0);
	return r;
}

int64_t lind_message_there(const struct lind_call *c, uint64_t flags)
{
	struct lind_arg none = { 0, c->target };
	char byte = 0;

	if (flags & (MSG_ERRQUEUE | MSG_OOB))
		return 0;
	return lind_call(SYS_recvfrom, c->target, c->args[0], lind_mine(&byte), (struct lind_arg){ 1, c->target },
	    (struct lind_arg){ MSG_PEEK | (flags & MSG_DONTWAIT), c->target }, none, none);
}

static int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* The end of the wait, or INT64_MAX for none. */
static int deadline(struct lind_arg timeout, int64_t *end)
{
	struct timespec t;
	int r;

	*end = INT64_MAX;
	if (!timeout.value)
		return 0;
	if ((r = lind_read(timeout, &t, sizeof t)) < 0)
		return r;
	if (t.tv_sec < 0 || t.tv_nsec < 0 || t.tv_nsec > 999999999)
		return -EINVAL;
	if (t.tv_sec < INT32_MAX)
		*end = now() + t.tv_sec * 1000000000ll + t.tv_nsec;
	return 0;
}

static void say_left(struct lind_arg timeout, int64_t end)
{
	int64_t left = end - now();
	struct timespec t;

	left = left < 0 ? 0 : left;
	t = (struct timespec){ .tv_sec = left / 1000000000, .tv_nsec = (long)(left % 1000000000) };
	if (timeout.value && end != INT64_MAX)
		(void)lind_write(timeout, &t, sizeof t);
}

int64_t lind_message_each(const struct lind_call *c, lind_handle_fn *one)
{
	int receives = c->nr == SYS_recvmmsg;
	uint32_t count = lind_arg32(c, 2), done = 0;
	uint64_t flags = c->args[3].value & ~(receives ? (uint64_t)MSG_WAITFORONE : 0);
	struct lind_call each = {
		.nr = receives ? SYS_recvmsg : SYS_sendmsg, .caller = c->caller, .target = c->target
	};
	int64_t end = INT64_MAX, r = 0;

	if (receives && (r = deadline(c->args[4], &end)) < 0)
		return r;
	for (int i = 3; i < 6; i++)
		each.args[i].cage = c->target;
	each.args[0] = c->args[0];
	each.args[1] = c->args[1];
	each.args[2] = (struct lind_arg){ flags, c->target };
	for (; done < count && done < MOST_PIECES; done++) {
		uint32_t length;

		if (done && (c->args[3].value & MSG_WAITFORONE) && receives)
			each.args[2].value = flags | MSG_DONTWAIT;
		if ((r = one(&each)) < 0)
			break;
		length = (uint32_t)r;
		if ((r = lind_write(lind_at(each.args[1], offsetof(struct mmsghdr, msg_len)), &length, sizeof length)) <
		    0)
			break;
		each.args[1].value += sizeof(struct mmsghdr);
		if (end != INT64_MAX && now() >= end) {
			done++;
			break;
		}
	}
	if (done && receives)
		say_left(c->args[4], end);
	return done ? (int64_t)done : r;
}
