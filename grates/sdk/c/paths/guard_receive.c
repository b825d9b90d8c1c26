/* Messages that a guarded client receives: the descriptors in them. */
#include <lind/transfer.h>
#include <poll.h>
#include <unistd.h>
#include "../core/sdk.h"
#include "guard.h"
#include "walk.h"

/* Waits as the client would until there is a message. 1 when there may be one. */
static int64_t wait_for_message(const struct lind_call *c)
{
	struct pollfd poll = { .fd = (int)lind_arg32(c, 0), .events = POLLIN };
	struct lind_arg none = { 0, c->target };
	struct {
		int64_t sec, usec;
	} limit = { 0, 0 };
	uint32_t size = sizeof limit;
	int64_t r = lind_call(SYS_getsockopt, c->target, c->args[0], number(SOL_SOCKET), number(SO_RCVTIMEO),
	    lind_mine(&limit), lind_mine(&size), none);
	int milliseconds = !r && (limit.sec || limit.usec) ? (int)(limit.sec * 1000 + (limit.usec + 999) / 1000) : -1;

	r = lind_call(SYS_poll, c->target, lind_mine(&poll), number(1), number((uint64_t)(int64_t)milliseconds), none,
	    none, none);
	return r ? r : -EAGAIN;
}

/* Gives the client what a message brought. A descriptor that it may not have is left out, as
 * where there are too many. */
static void hand_over(const struct lind_call *c, struct lind_message *m, bool cloexec)
{
	char *control = m->own.msg_control;
	size_t end = m->own.msg_controllen, at = 0;

	while (at + sizeof(struct cmsghdr) <= end) {
		struct cmsghdr *part = (struct cmsghdr *)(control + at);
		int *numbers = (int *)CMSG_DATA(part);
		size_t count, kept = 0;

		if (part->cmsg_len < sizeof *part || part->cmsg_len > end - at)
			return;
		count = (part->cmsg_len - sizeof *part) / sizeof *numbers;
		at += CMSG_ALIGN(part->cmsg_len);
		if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
			continue;
		for (size_t i = 0; i < count; i++) {
			int64_t given = -1;

			if (!guard_may_have(numbers[i]))
				own_close(numbers[i]);
			else
				given = lind_give_fd(c->target, numbers[i], cloexec);
			if (given >= 0)
				numbers[kept++] = (int)given;
		}
		if (kept == count)
			continue;
		/* Rights come last: what follows would have to move otherwise. */
		m->own.msg_flags |= MSG_CTRUNC;
		part->cmsg_len = CMSG_LEN(kept * sizeof *numbers);
		m->own.msg_controllen =
		    (socklen_t)((char *)part - (char *)m->own.msg_control) + (kept ? part->cmsg_len : 0);
		return;
	}
}

static int64_t receive(const struct lind_call *c)
{
	struct lind_call here = *c;
	uint64_t flags = lind_arg32(c, 2);
	struct lind_message m;
	int64_t r = lind_message_room(&m, c->args[1]);
	struct lind_arg none = { 0, c->target };
	int64_t socket;

	if (r)
		return r;
	if (!m.own.msg_control) {
		r = lind_message_pass(&m, c, flags);
		goto out;
	}
	/* Into the grate, so that the client has no descriptor before it was looked at; and without
	 * waiting, which is the client's. */
	here.target = lind_self_;
	socket = lind_call(SYS_fcntl, c->target, c->args[0], number(F_GETFL), none, none, none, none);
	do {
		struct msghdr fresh = m.own;

		r = lind_message_pass(&m, &here, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
		if (r != -EAGAIN || flags & MSG_DONTWAIT || (socket >= 0 && socket & O_NONBLOCK))
			break;
		m.own = fresh;
	} while ((r = wait_for_message(c)) > 0);
	if (r >= 0)
		hand_over(c, &m, flags & MSG_CMSG_CLOEXEC);
	m.own.msg_flags &= ~MSG_CMSG_CLOEXEC;
out:
	r = lind_message_give(&m, r, flags);
	lind_message_free(&m);
	return r;
}

int64_t lind_guard_receive(const struct lind_call *c)
{
	return c->nr == SYS_recvmmsg ? lind_message_each(c, receive) : receive(c);
}
