/* Gives a state to every file opened as /tmp/fds-N, and tells what a descriptor's is: call 900
 * answers N, or 0. 901 answers how many states there are. */
#include <lind/fds.h>
#include <lind/grate.h>
#include <stdlib.h>

LIND_HANDLE(answers, openat);
LIND_HANDLE(alters, write);

#define SYS_900 900
#define SYS_901 901
static lind_handle_fn on_query, on_alive;
LIND_HANDLE(answers, 900, on_query);
LIND_HANDLE(answers, 901, on_alive);

struct tag {
	struct lind_fd_state fd;
	int number;
};

static int alive;

/* With --pin-only a write goes on whatever the state is, by a descriptor of ours: a grate before us
 * must still know it. */
static int pin_only;

LIND_SETS(set_pin_only, pin_only = 1)

static void drop(struct lind_fd_state *state)
{
	__atomic_fetch_sub(&alive, 1, __ATOMIC_RELAXED);
	free(state);
}

static struct lind_fd_state *higher(struct lind_fd_state *a, struct lind_fd_state *b)
{
	return ((struct tag *)a)->number >= ((struct tag *)b)->number ? a : b;
}

static int64_t opened(const struct lind_call *cx, int dir, const char *path, int flags, mode_t mode)
{
	long fd = lind_forward_openat(cx, dir, path, flags, mode);
	struct tag *tag;
	int r;

	if (fd < 0 || strncmp(path, "/tmp/fds-", 9) || !atoi(path + 9))
		return fd;
	if (!(tag = calloc(1, sizeof *tag)))
		return -ENOMEM;
	__atomic_fetch_add(&alive, 1, __ATOMIC_RELAXED);
	tag->number = atoi(path + 9);
	tag->fd.refs = 1;
	r = lind_fd_keep(cx->target, (int)fd, &tag->fd, flags & O_CLOEXEC);
	lind_fd_put(&tag->fd);
	return r ? r : fd;
}

static int64_t on_openat(const struct lind_call *cx, int dir, const char *path, int flags, mode_t mode)
{
	long fd;

	lind_fd_making(cx->target);
	fd = opened(cx, dir, path, flags, mode);
	lind_fd_made(cx->target);
	return fd;
}

static int64_t on_query(const struct lind_call *c)
{
	struct lind_fd_state *state = lind_fd_get(c->args[0].cage, (int)c->args[0].value);
	int number = state ? ((struct tag *)state)->number : 0;

	lind_fd_put(state);
	return number;
}

static int64_t on_alive(const struct lind_call *c)
{
	(void)c;
	return __atomic_load_n(&alive, __ATOMIC_RELAXED);
}

/* Nothing with a state is written, whatever the threads of the client do to its number
 * meanwhile. */
static int64_t on_write(const struct lind_call *cx, int fd, struct lind_arg buf, size_t len)
{
	struct lind_fd_state *state;
	struct lind_arg none = { 0, cx->target };
	int pinned = lind_fd_pin(cx->args[0].cage, fd, &state);
	long r = pinned;

	if (pinned < 0)
		return r;
	r = state && !pin_only
	    ? -EPERM
	    : (long)lind_call(SYS_write, cx->target, (struct lind_arg){ (uint64_t)pinned, lind_self() }, buf,
		  (struct lind_arg){ len, cx->target }, none, none, none);
	lind_fd_unpin(pinned, state);
	return r;
}

int main(int argc, char **argv)
{
	static const struct lind_fds hooks = { drop, higher };
	static const struct lind_option options[] = { { 0, "pin-only", NULL, "judge nothing", set_pin_only } };

	lind_options(options, 1, "Follows descriptors.", &argc, &argv);
	lind_fds_follow(&hooks);
	if (pin_only) {
		lind_grate_without(SYS_900);
		lind_grate_without(SYS_901);
	}
	return lind_grate_main(argc, argv);
}
