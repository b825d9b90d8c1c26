/* Follows descriptors with a state through the calls that copy, move and close them. See
 * lind/fds.h and fdtable.h. */
#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include "follow.h"

/* These calls are handled in every grate that includes this file. */
LIND_FOLLOWS(dup);
LIND_FOLLOWS(dup2);
LIND_FOLLOWS(dup3);
LIND_FOLLOWS(fcntl);
LIND_FOLLOWS(ioctl);
LIND_FOLLOWS(close);
LIND_FOLLOWS(close_range);
LIND_FOLLOWS(sendmsg);
LIND_FOLLOWS(recvmsg);
LIND_FOLLOWS(sendmmsg);
LIND_FOLLOWS(recvmmsg);

static struct fd_table **leaves[LIND_CLIENT_LEAVES];
static lind_handle_fn *own_dup, *own_dup2, *own_dup3, *own_fcntl, *own_ioctl, *own_close, *own_close_range;
static lind_handle_fn *own_sendmmsg, *own_recvmmsg;
struct lind_fd_state *(*fd_stricter)(struct lind_fd_state *a, struct lind_fd_state *b);

static struct fd_table *find(uint64_t cage)
{
	struct fd_table **leaf;

	if (!cage || cage > UINT32_MAX)
		return NULL;
	leaf = __atomic_load_n(&leaves[cage / LIND_CLIENT_LEAF], __ATOMIC_ACQUIRE);
	return leaf ? __atomic_load_n(&leaf[cage % LIND_CLIENT_LEAF], __ATOMIC_ACQUIRE) : NULL;
}

/* Births and ends come one at a time: clients.c holds its lock. */
static struct fd_table *make(uint64_t cage)
{
	struct fd_table ***leaf = &leaves[cage / LIND_CLIENT_LEAF], *t = fd_table_new();

	if (!t || (!*leaf && !(*leaf = calloc(LIND_CLIENT_LEAF, sizeof **leaf))))
		lind_die("out of memory for a client's descriptors");
	__atomic_store_n(&(*leaf)[cage % LIND_CLIENT_LEAF], t, __ATOMIC_RELEASE);
	return t;
}

static void start(uint64_t cage)
{
	make(cage);
}

static void born(uint64_t parent, uint64_t cage, int spawned)
{
	struct fd_table *t = make(cage), *from = find(parent);

	if (from && fd_table_copy(t, from))
		lind_die("out of memory for a client's descriptors");
	if (spawned)
		fd_table_exec(t);
}

static void exec(uint64_t cage)
{
	struct fd_table *t = find(cage);

	if (t)
		fd_table_exec(t);
}

static void ended(uint64_t cage)
{
	struct fd_table *t = find(cage);

	if (t) {
		__atomic_store_n(&leaves[cage / LIND_CLIENT_LEAF][cage % LIND_CLIENT_LEAF], NULL, __ATOMIC_RELEASE);
		fd_table_free(t);
	}
}

static void freeze(uint64_t cage)
{
	struct fd_table *t = fd_table_of(cage);

	if (t)
		fd_table_freeze(t);
}

static void thaw(uint64_t cage)
{
	struct fd_table *t = find(cage);

	if (t)
		fd_table_thaw(t);
}

struct fd_table *fd_table_of(uint64_t cage)
{
	struct fd_table *t = find(cage);

	if (!t) {
		lind_client(cage);
		t = find(cage);
	}
	return t;
}

int fd_identity(uint64_t cage, uint32_t fd, uint64_t *dev, uint64_t *ino)
{
	struct lind_arg none = { 0, cage };
	struct stat st = { 0 };
	int64_t r = lind_call(SYS_fstat, cage, (struct lind_arg){ fd, cage }, lind_mine(&st), none, none, none, none);

	if (r < 0)
		return (int)r;
	*dev = st.st_dev;
	*ino = st.st_ino;
	return 0;
}

struct fd_entry fd_look(uint64_t cage, struct fd_table *t, uint32_t fd)
{
	for (;;) {
		struct fd_entry e = fd_table_get(t, fd, true);
		uint64_t dev, ino;

		if (!e.doubtful || (!fd_identity(cage, fd, &dev, &ino) && dev == e.state->dev && ino == e.state->ino))
			return e;
		fd_table_clear(t, fd, e.generation);
		lind_fd_put(e.state);
	}
}

void lind_fd_making(uint64_t cage)
{
	struct fd_table *t = fd_table_of(cage);

	if (t)
		fd_table_grow(t);
}

void lind_fd_made(uint64_t cage)
{
	struct fd_table *t = fd_table_of(cage);

	if (t)
		fd_table_grown(t);
}

int lind_fd_keep(uint64_t cage, int fd, struct lind_fd_state *state, int cloexec)
{
	struct fd_table *t = fd_table_of(cage);
	int r;

	if (!t || fd < 0)
		return -EBADF;
	if (state && (r = fd_identity(cage, (uint32_t)fd, &state->dev, &state->ino)) < 0)
		return r;
	return fd_table_set(t, (uint32_t)fd, state, cloexec);
}

struct lind_fd_state *lind_fd_get(uint64_t cage, int fd)
{
	struct fd_table *t = fd_table_of(cage);

	return t && fd >= 0 ? fd_look(cage, t, (uint32_t)fd).state : NULL;
}

/* A state that was there before and after was there meanwhile: what has one comes with a new
 * generation before the kernel has it, or while others wait. */
int lind_fd_pin(uint64_t cage, int fd, struct lind_fd_state **state)
{
	struct fd_table *t = fd_table_of(cage);
	struct lind_arg none = { 0, lind_self_ };

	*state = NULL;
	if (!t || fd < 0)
		return -EBADF;
	for (;;) {
		struct fd_entry before = fd_look(cage, t, (uint32_t)fd), after;
		int64_t pinned = lind_call(
		    SYS_dup, lind_self_, (struct lind_arg){ (uint64_t)fd, cage }, none, none, none, none, none);

		after = fd_look(cage, t, (uint32_t)fd);
		lind_fd_put(before.state);
		if (pinned >= 0 && before.generation == after.generation) {
			*state = after.state;
			return (int)pinned;
		}
		lind_fd_put(after.state);
		if (pinned < 0)
			return (int)pinned;
		lind_call_plain(SYS_close, lind_self_, (uint64_t)pinned, 0, 0, 0);
	}
}

void lind_fd_unpin(int pinned, struct lind_fd_state *state)
{
	lind_call_plain(SYS_close, lind_self_, (uint64_t)pinned, 0, 0, 0);
	lind_fd_put(state);
}

/* The old number may get another file while the kernel duplicates it. Then the duplicate is made
 * again. */
#define TRIES 1000

/* A thread that looked at the number meanwhile must notice: the entry changes too, when the file
 * has gone. */
static void drop_number(uint64_t cage, struct fd_table *t, uint32_t fd)
{
	lind_call_plain(SYS_close, cage, fd, 0, 0, 0);
	fd_table_set(t, fd, NULL, false);
}

/* dup, F_DUPFD: the number is not known before. A grate may duplicate a descriptor of its client
 * for itself, or the other way round. */
static int64_t duplicate(lind_handle_fn *own, const struct lind_call *c, bool cloexec)
{
	uint64_t cage = c->args[0].cage;
	struct fd_table *from = fd_table_of(cage), *to = fd_table_of(c->target);
	uint32_t old = lind_arg32(c, 0);
	int64_t new = -EBUSY;

	if (!from || !to)
		return -EBADF;
	fd_table_grow(to);
	for (int i = 0; i < TRIES && new == -EBUSY; i++) {
		struct fd_entry before = fd_look(cage, from, old), after;
		int r;

		if ((new = lind_outcome_(own, c)) >= 0) {
			after = fd_look(cage, from, old);
			lind_fd_put(after.state);
			r = after.generation != before.generation
			    ? -EBUSY
			    : fd_table_set(to, (uint32_t)new, before.state, cloexec);
			if (r) {
				drop_number(c->target, to, (uint32_t)new);
				new = r;
			}
		}
		lind_fd_put(before.state);
	}
	fd_table_grown(to);
	return new;
}

/* dup2, dup3: the new number has the state before the kernel makes it the old file's. */
static int64_t duplicate_to(lind_handle_fn *own, const struct lind_call *c, bool cloexec)
{
	uint64_t cage = c->args[0].cage;
	uint32_t old = lind_arg32(c, 0), new = lind_arg32(c, 1);
	struct fd_table *from = fd_table_of(cage), *to = fd_table_of(c->target);
	struct fd_entry covered;
	bool again = true;
	int64_t r = 0;

	if (!from || !to)
		return -EBADF;
	if (from == to && old == new)
		return lind_outcome_(own, c);
	fd_table_grow(to);
	covered = fd_look(c->target, to, new);
	for (int i = 0; i < TRIES && again; i++) {
		struct fd_entry before = fd_look(cage, from, old), after = before;
		int set = before.state ? fd_table_set(to, new, before.state, cloexec) : 0;

		r = set ? set : lind_outcome_(own, c);
		if (r < 0) {
			fd_table_set(to, new, covered.state, covered.cloexec);
		} else {
			after = fd_look(cage, from, old);
			lind_fd_put(after.state);
			if (!before.state)
				fd_table_set(to, new, NULL, false); /* also if it had none */
		}
		again = after.generation != before.generation;
		lind_fd_put(before.state);
	}
	if (again && r >= 0) {
		drop_number(c->target, to, new);
		r = -EBUSY;
	}
	fd_table_grown(to);
	lind_fd_put(covered.state);
	return r;
}

static int64_t on_dup(const struct lind_call *c)
{
	return duplicate(own_dup, c, false);
}

static int64_t on_dup2(const struct lind_call *c)
{
	return duplicate_to(own_dup2, c, false);
}

static int64_t on_dup3(const struct lind_call *c)
{
	return duplicate_to(own_dup3, c, lind_arg32(c, 2) & O_CLOEXEC);
}

/* A descriptor that stays open across exec is known as that before it is, one that closes only
 * afterwards: in between it counts as open. */
static int64_t set_cloexec(lind_handle_fn *own, const struct lind_call *c, bool cloexec)
{
	struct fd_table *t = fd_table_of(c->args[0].cage);
	uint32_t fd = lind_arg32(c, 0);
	struct fd_entry before;
	int64_t r;

	if (!t)
		return lind_outcome_(own, c);
	before = fd_table_get(t, fd, false);
	lind_fd_put(before.state);
	if (!cloexec)
		fd_table_cloexec(t, fd, false);
	r = lind_outcome_(own, c);
	if (r < 0 ? before.cloexec : cloexec)
		fd_table_cloexec(t, fd, true);
	return r;
}

static int64_t on_fcntl(const struct lind_call *c)
{
	switch (lind_arg32(c, 1)) {
	case F_DUPFD:
		return duplicate(own_fcntl, c, false);
	case F_DUPFD_CLOEXEC:
		return duplicate(own_fcntl, c, true);
	case F_SETFD:
		return set_cloexec(own_fcntl, c, lind_arg32(c, 2) & FD_CLOEXEC);
	default:
		return lind_outcome_(own_fcntl, c);
	}
}

static int64_t on_ioctl(const struct lind_call *c)
{
	uint32_t request = lind_arg32(c, 1);

	if (request == FIOCLEX || request == FIONCLEX)
		return set_cloexec(own_ioctl, c, request == FIOCLEX);
	return lind_outcome_(own_ioctl, c);
}

/* Until the kernel has closed it the number has its state, and then perhaps another file: in
 * between the file decides. */
static int64_t on_close(const struct lind_call *c)
{
	uint64_t cage = c->args[0].cage;
	struct fd_table *t = fd_table_of(cage);
	uint32_t fd = lind_arg32(c, 0), generation;
	int64_t r;

	if (!t || !fd_table_doubt(t, fd, fd, &generation))
		return lind_outcome_(own_close, c);
	r = lind_outcome_(own_close, c);
	if (r == 0)
		fd_table_clear(t, fd, generation);
	return r;
}

static int64_t on_close_range(const struct lind_call *c)
{
	struct fd_table *t = fd_table_of(c->target);
	uint32_t first = lind_arg32(c, 0), last = lind_arg32(c, 1), fd;
	bool cloexec = lind_arg32(c, 2) & CLOSE_RANGE_CLOEXEC;
	uint32_t generation;
	int64_t r;

	if (!t || last < first)
		return lind_outcome_(own_close_range, c);
	if (!cloexec)
		fd_table_doubt(t, first, last, &generation);
	if ((r = lind_outcome_(own_close_range, c)) < 0)
		return r;
	for (fd = first; fd <= last && fd < t->room; fd++)
		if (cloexec)
			fd_table_cloexec(t, fd, true);
		else
			lind_fd_put(fd_look(c->target, t, fd).state);
	return r;
}

static void watch(struct lind_spawn_handler *table, size_t *count)
{
	lind_watch_(table, count, SYS_dup, on_dup, &own_dup);
	lind_watch_(table, count, SYS_dup2, on_dup2, &own_dup2);
	lind_watch_(table, count, SYS_dup3, on_dup3, &own_dup3);
	lind_watch_(table, count, SYS_fcntl, on_fcntl, &own_fcntl);
	lind_watch_(table, count, SYS_ioctl, on_ioctl, &own_ioctl);
	lind_watch_(table, count, SYS_close, on_close, &own_close);
	lind_watch_(table, count, SYS_close_range, on_close_range, &own_close_range);
	lind_watch_(table, count, SYS_sendmsg, fds_sendmsg, &own_sendmsg);
	lind_watch_(table, count, SYS_recvmsg, fds_recvmsg, &own_recvmsg);
	lind_watch_(table, count, SYS_sendmmsg, fds_sendmmsg, &own_sendmmsg);
	lind_watch_(table, count, SYS_recvmmsg, fds_recvmmsg, &own_recvmmsg);
	if (own_sendmmsg || own_recvmmsg)
		lind_die(
		    "sendmmsg and recvmmsg are handled as sendmsg and recvmsg, one message at a time: handle these");
}

void lind_fds_follow(const struct lind_fds *hooks)
{
	static const struct lind_inner inner = { start, born, exec, ended, freeze, thaw, watch };

	fd_state_drop = hooks->drop;
	fd_stricter = hooks->stricter;
	lind_follow_births();
	lind_inner_ = &inner;
}
