/*
 * Numbers that threads change. A call past the grates inside goes by a number, and until the kernel
 * looks at that, another thread may close it and get a file there that is inside. So in a client
 * with threads such a call is made on a descriptor of this grate's own: a copy of what is at the
 * number, taken between two looks at the number's word.
 *
 * A word says HELD if the file at the number is outside for certain. That is taken away before
 * anything is closed; so if it was there before the copy was made and after, with the same count,
 * the copy is that file. Otherwise the file may be new and not marked yet: the copy is good only if
 * no call is under way that may make a descriptor inside.
 */
#include <fcntl.h>
#include <sched.h>
#include "calls.h"
#include "hold.h"
#include "kinds.h"
#include "words.h"

#define PATIENT 2000
/* Numbers that are looked at when threads begin. Above, a file that was there before is not
 * known to be outside: that costs a wait, now and then. */
#define LOOKED_AT 1024u

/* Whether any client has or had threads. */
static atomic_bool any;

/* The first thread but one is about to be: until then nobody else changes numbers. */
static void threads_begin(struct client *client, uint64_t cage)
{
	atomic_store(&client->threads, true);
	atomic_store(&any, true);
	for (uint32_t fd = 0; fd < LIND_FDS; fd++)
		if (!(fd_word(client, fd) & INSIDE) && !(by_property && fd < LOOKED_AT && fd_look(client, fd)))
			fd_set_word(client, fd,
			    fd < LOOKED_AT && lind_call_plain(SYS_fcntl, cage, fd, F_GETFD, 0, 0) >= 0 ? HELD : 0);
}

/* exec: one thread is left. */
void threads_end(struct client *client)
{
	calls_ended(client);
	if (!atomic_exchange(&client->threads, false) && !by_property)
		return;
	for (uint32_t fd = 0; fd < LIND_FDS; fd++)
		fd_set_word(client, fd, fd_word(client, fd) & INSIDE);
}

int64_t on_clone(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	bool shares = lind_arg32(c, 0) & CLONE_FILES;
	int64_t r;

	if (client && shares && !atomic_load(&client->threads))
		threads_begin(client, c->target);
	if (client && !shares)
		fds_before_copy(client);
	r = lind_handled_inside(0, c->nr) ? enter(c) : lind_forward(c);
	if (r < 0)
		fds_not_copied();
	return r;
}

int look_at_number(const struct client *client, struct lind_arg fd)
{
	uint32_t number = (uint32_t)fd.value;

	if (lind_call_plain(SYS_fcntl, fd.cage, number, F_GETFD, 0, 0) < 0)
		return -EBADF;
	for (int i = 0; i < PATIENT; i++) {
		/* In this order: who was making has marked what came of it. */
		unsigned making = atomic_load(&client->making), moving = atomic_load(&client->moving);
		uint32_t word = fd_word(client, number);

		if (word & INSIDE || number >= LIND_FDS)
			return 1;
		if (word & HELD || !(making | moving))
			return 0;
		/* As in hold. */
		if (!moving)
			return -EBADF;
		wait_a_moment(i);
	}
	return -EBADF;
}

int hold(struct client *client, struct lind_arg fd, struct lind_arg *held, bool *inside)
{
	uint32_t number = (uint32_t)fd.value;
	struct lind_arg none = { 0, lind_self() };

	for (int i = 0; i < PATIENT; i++) {
		uint32_t was = fd_word(client, number);
		unsigned making, moving;
		int64_t own;

		own = lind_call(SYS_fcntl, lind_self(), fd, (struct lind_arg){ F_DUPFD_CLOEXEC, lind_self() }, none,
		    none, none, none);
		if (own < 0)
			return (int)own;
		/* In this order: who was making has marked what came of it. */
		making = others(&client->making);
		moving = others(&client->moving);
		if (fd_word(client, number) == was && (was & (HELD | INSIDE) || !(making | moving))) {
			*held = (struct lind_arg){ (uint64_t)own, lind_self() };
			*inside =
			    was & INSIDE || (by_property && !(was & HELD) && fd_matches(lind_self(), (uint32_t)own));
			if (*inside && !(was & INSIDE))
				fd_mark(client, number);
			return 0;
		}
		release((struct lind_arg){ (uint64_t)own, lind_self() });
		/* A call that waits for a connection or a message may wait for ever, and no thread
		 * has the number yet. */
		if (!(was & (HELD | INSIDE)) && making && !moving && fd_word(client, number) == was)
			return -EBADF;
		wait_a_moment(i);
	}
	return -EBADF;
}

void release(struct lind_arg held)
{
	struct lind_arg none = { 0, lind_self() };

	if (held.cage)
		lind_call(SYS_close, lind_self(), held, none, none, none, none, none);
}

int64_t go_past(const struct lind_call *c, unsigned args)
{
	struct lind_arg held[6] = { { 0 } };
	struct lind_call own = *c;
	bool inside = false;
	int64_t r = 0;

	if (!atomic_load(&any))
		return lind_forward(c);
	for (int i = 0; i < 6 && !r && !inside; i++) {
		struct client *client = args >> i & 1 && c->args[i].cage ? lind_client(c->args[i].cage) : NULL;

		if (!client || !atomic_load(&client->threads))
			continue;
		if (!(r = hold(client, c->args[i], &held[i], &inside)))
			own.args[i] = held[i];
	}
	if (!r)
		r = inside ? enter(c) : lind_forward(&own);
	for (int i = 0; i < 6; i++)
		release(held[i]);
	return r;
}
