/*
 * State that a grate keeps for descriptors of its clients:
 *
 *	struct log { struct lind_fd_state fd; ... };
 *
 *	static int64_t on_openat(const struct lind_call *cx, ...)
 *	{
 *		int64_t fd;
 *
 *		lind_fd_making(cx->target);
 *		fd = lind_forward_openat(cx, ...);
 *		if (fd >= 0)
 *			lind_fd_keep(cx->target, (int)fd, &log->fd, flags & O_CLOEXEC);
 *		lind_fd_made(cx->target);
 *		return fd;
 *	}
 *
 *	static int64_t on_write(const struct lind_call *cx, int fd, ...)
 *	{
 *		struct log *log = (struct log *)lind_fd_get(cx->args[0].cage, fd);
 *		...
 *		lind_fd_put(&log->fd);
 *
 * New descriptors are the target's; those among the arguments belong to the cage that the argument
 * names, which is another one where a grate acts for its client.
 *
 * The state belongs to the open file: it is the same behind every number that dup, dup2, dup3 and
 * fcntl make of it, in forked and spawned children, in the program that exec starts unless the
 * descriptor closes then, and in whoever gets it by SCM_RIGHTS. It goes when the last of them has
 * closed it: close, close_range, dup2 onto it, exec, exit.
 *
 * A state should restrict. While a number is on its way from one file to another, lind_fd_get may
 * see the state of the file that is going, and never misses that of one that comes: it waits for
 * duplications and receptions of the client that are under way. Inside a handler of these calls it
 * does not wait.
 *
 * One race cannot be excluded: between lind_fd_get and the call that the handler forwards, another
 * thread of the client may put another file at the number. Opening /proc/self/fd/N opens the file
 * again: the handlers of open decide about that. A grate's clients share the room for 4096 states
 * that are on their way in messages; beyond it sending is ETOOMANYREFS. A handler that must not let
 * this happen forwards lind_fd_pin's number instead.
 */
#ifndef LIND_FDS_H
#define LIND_FDS_H

#include <lind/raw.h>

/* The first member of what a grate keeps. Zero it. */
struct lind_fd_state {
	uint32_t refs;
	uint64_t dev, ino;
};

struct lind_fds {
	/* The last descriptor of the file has gone. May be NULL. */
	void (*drop)(struct lind_fd_state *state);
	/* Two open files of one file are on their way to other processes, and one has arrived: whose
	 * state do they get? NULL: in the order in which they were sent, which may be wrong. */
	struct lind_fd_state *(*stricter)(struct lind_fd_state *a, struct lind_fd_state *b);
};

/* To be called before lind_grate_run. The SDK handles the calls above from then on; the grate's
 * own handlers for them run inside its. */
void lind_fds_follow(const struct lind_fds *hooks);

/*
 * Around the call that makes a descriptor and lind_fd_keep: in between the client has the number,
 * which other threads of it may guess, and the state is not there yet. A thread that looks at the
 * client's descriptors waits until the end; after 2 seconds lind_fd_get goes on all the same, and
 * lind_fd_pin looks again.
 */
void lind_fd_making(uint64_t cage);
void lind_fd_made(uint64_t cage);

/* Gives the file at `fd` this state, which has then a reference more; NULL takes it away. 0,
 * -EBADF, -ENOMEM. */
int lind_fd_keep(uint64_t cage, int fd, struct lind_fd_state *state, int cloexec);

/* The state of `fd`, with a reference for the caller; NULL if it has none. */
struct lind_fd_state *lind_fd_get(uint64_t cage, int fd);

/* Gives the reference back. NULL is allowed. */
void lind_fd_put(struct lind_fd_state *state);

/* Makes a descriptor of the grate itself for the file at `fd`, and says its state. Forward it as
 * { number, lind_self() }: then what was looked at is what is used. Negative: an errno, and no
 * state. */
int lind_fd_pin(uint64_t cage, int fd, struct lind_fd_state **state);

/* Closes what lind_fd_pin made and gives the state back. */
void lind_fd_unpin(int pinned, struct lind_fd_state *state);

/* Calls `look` with each number below `end` at which the grate itself has a file open, except
 * where O_PATH opened it. It asks for many at once, which each start pays for; where that is
 * refused, numbers that are not open are looked at, too. */
void lind_each_own_fd(int end, void (*look)(int fd));

#endif
