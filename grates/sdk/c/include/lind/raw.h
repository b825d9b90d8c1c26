/*
 * Handlers of the untyped kind, and what all handlers use: calls as they come, calls of our own,
 * the memory of clients. <lind/grate.h> has handlers with C arguments, and includes this.
 *
 *	static int64_t on_geteuid(const struct lind_call *c) { return 10; }
 *
 *	int main(int argc, char **argv)
 *	{
 *		static const struct lind_handler on[] = { { SYS_geteuid, on_geteuid } };
 *		return lind_grate_run(on, 1, argc, argv);
 *	}
 */
#ifndef LIND_RAW_H
#define LIND_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <lind/clients.h>
#include <lind/options.h>
#include <lind/syscalls.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One argument: 64 bits, and the cage whose memory or descriptors they refer to; 0 if that is
 * none the caller may name. */
struct lind_arg {
	uint64_t value;
	uint64_t cage;
};

/* A system call as a handler sees it. */
struct lind_call {
	uint32_t nr;
	uint32_t pad;
	uint64_t caller; /* who makes this call: a client, or a grate that forwards for one */
	uint64_t target; /* whose state it acts on */
	struct lind_arg args[6];
};

/* An argument that the call takes as an int: what is above 32 bits does not count. */
static inline uint32_t lind_arg32(const struct lind_call *call, int at)
{
	return (uint32_t)call->args[at].value;
}

typedef int64_t lind_handle_fn(const struct lind_call *call);

/* Behind the call that a handler is given: what is to be copied when it has returned
 * LIND_ANSWER, and its result then. See lind_answer. */
struct lind_answer {
	int64_t result;
	uint64_t to, cage; /* as in a struct lind_arg */
	uint64_t from;  /* in the grate's own memory */
	uint64_t length;
	uint64_t release; /* address of a 32-bit word of the grate that is 0 from then on, or 0 */
	uint64_t part;  /* not 0: where the client has no memory for all of it the result is how many bytes it got */
};

/* Without `handle` a number that LIND_NR_ANY would cover is left out: its calls do not enter the
 * grate. */
struct lind_handler {
	uint32_t nr;
	lind_handle_fn *handle;
};

/* From here on numbers have no names. */
#define LIND_NUMBERS 1100u

/* Numbers that LIND_NR_ANY does not cover. */
static inline bool lind_outside_any(uint32_t nr)
{
	return nr == SYS_exit || nr == SYS_exit_group || nr == SYS_rt_sigreturn || (nr >= 1000 && nr < LIND_NUMBERS);
}

#define LIND_AS_BEFORE 0xffffffffu
/* Flag of spawn: the calling thread is going to wait for the child, which need not begin before. */
#define LIND_SPAWN_WAITS 1u

/* An entry of the table that spawn takes: `entry` is the handler's function pointer, or
 * LIND_AS_BEFORE. */
struct lind_spawn_handler {
	uint32_t nr;
	uint32_t entry;
};

/* Passes a call on as it is, to the grate before this one or to the kernel, and returns its result.
 * To change arguments change a copy of the call. */
int64_t lind_forward(const struct lind_call *call);

/*
 * Ends a handler that has nothing more to do with its call: return what this returns, at once. The
 * call goes on as by lind_forward, when the handler has returned: that is one way into the kernel
 * less, and the handler does not learn the result. A call that waits does so outside the grate: the
 * end of the grate does not touch it, and in a serialized one it holds nobody up.
 */
static inline int64_t lind_pass(const struct lind_call *call);

/*
 * A filter: what decides most calls of `handler` in its place, at a fraction of the cost of
 * entering the grate.
 *
 *	LIND_FILTER(on_socket)
 *	{
 *		return a0 == AF_UNIX ? LIND_PASS : LIND_ASK;
 *	}
 *
 * It sees the id of the client, the number and the six values of a call that a client makes on
 * itself, and returns what the handler would: a result, LIND_PASS, or LIND_ASK to have the handler
 * called after all. It may be asked any number of times about one call, or not at all. So it only
 * computes: it reads memory, also what handlers on other threads change (by atomic loads), and has
 * local variables, but it writes nothing, calls nothing that does, and computes with integers only;
 * a module with another filter is refused when it is compiled. A filter that faults is not asked
 * again. A grate has at most one. Without optimisation compilers keep local variables in memory:
 * then there is none.
 */
#define LIND_FILTER(handler) LIND_FILTER_(handler)

/* Makes a call of our choice that acts on `target`. */
int64_t lind_call(uint32_t nr, uint64_t target, struct lind_arg a0, struct lind_arg a1, struct lind_arg a2,
    struct lind_arg a3, struct lind_arg a4, struct lind_arg a5);

/* The same with plain numbers; they and descriptors among them are the target's. */
int64_t lind_call_plain(uint32_t nr, uint64_t target, uint64_t v0, uint64_t v1, uint64_t v2, uint64_t v3);

/* This grate's cage id. */
uint64_t lind_self(void);

/* An argument that points into this grate's memory. */
struct lind_arg lind_mine(const void *address);

/* Reads `length` bytes at `arg`, an address in its cage's memory. 0, -EFAULT, or -EPERM for cage
 * 0. */
static inline int lind_read(struct lind_arg arg, void *to, size_t length);

/* The same, and what time it is then: CLOCK_REALTIME_COARSE in nanoseconds, which would be
 * another call. `length` is not 0. */
static inline int64_t lind_read_timed(struct lind_arg arg, void *to, size_t length);

/* Writes `length` bytes at `arg`. 0, -EFAULT, or -EPERM for cage 0. */
static inline int lind_write(struct lind_arg arg, const void *from, size_t length);
/* After a lind_write that failed: writes up to the first page that is not there, and returns how
 * many bytes that were. */
size_t lind_write_part(struct lind_arg to, const void *from, size_t length);

/*
 * Ends a handler: return what this returns, at once. The client gets `result`, and at `to` the
 * `length` bytes that are at `from` when the handler has returned: a copy that needs no call of its
 * own. If it cannot be made the client gets -EFAULT instead, so nothing may have happened that this
 * would deny. `from` is not to change or go until then: a thread-local variable, or what is never
 * changed, but no local variable and nothing that another thread may free or use for another
 * client.
 */
static inline int64_t lind_answer(
    const struct lind_call *call, int64_t result, struct lind_arg to, const void *from, size_t length);

/*
 * The same for what read(2) and its kind do, from data that others may change: where the client has
 * no memory for all of it, it gets what comes before, and the result is how much that is.
 * `*release` becomes 0 when it has been copied, whatever came of it: a lock that keeps the data at
 * `from` as they are, and that needs no other call to be given back.
 */
static inline int64_t lind_answer_from(
    const struct lind_call *call, struct lind_arg to, const void *from, size_t length, int32_t *release);

/* Reads a string with its NUL into `to`, at most `size` bytes. Its length, -EFAULT, or
 * -ENAMETOOLONG if no NUL comes within `size` bytes. */
ssize_t lind_read_string(struct lind_arg arg, char *to, size_t size);

/* The last part of a path. */
const char *lind_base_name(const char *path);

/* The same of a path that a client names, as messages can have it: what cannot be printed is
 * '?'. False if it cannot be read; `name` stays then. */
bool lind_read_base_name(struct lind_arg path, char *name, size_t size);

/* Reads an array of `count` iovecs. 0, -EINVAL if they are too many or too long, -EFAULT. */
int lind_read_iovec(struct lind_arg arg, uint64_t count, struct iovec *to, size_t max);

/* The argument `bytes` further on. */
static inline struct lind_arg lind_at(struct lind_arg arg, uint64_t bytes)
{
	arg.value += bytes;
	return arg;
}

/*
 * Waits in a handler while `*word` is `value`, as a futex(2) of the client: 0 when lind_wake was
 * called (or for no reason: look again), -EAGAIN if it had another value, -ETIMEDOUT, and -EINTR
 * when the client gets a signal or is to end. The handler then gives up and returns -EINTR, as
 * calls that wait do. Hold no mutex. A pthread condition cannot be left like this, so a handler
 * that waits on one for another client holds up the end of its own.
 */
struct timespec;
int lind_wait(uint64_t client, const uint32_t *word, uint32_t value, const struct timespec *timeout);

/* Wakes all who wait for this word. Change it before. */
void lind_wake(uint32_t *word);

/* In a handler: a duplicate of our descriptor for the client whose call it is, close-on-exec or
 * not. Its number there, or the negative of an errno: what SYS_dup with lind_call does, and
 * shorter. */
static inline int64_t lind_dup_to_client(int fd, int cloexec);

/*
 * Starts argv[1] with arguments argv[1..] and these handlers, waits for it, runs `end`, and returns
 * the status to exit with: the program's own, 128+n if signal n ended it, 127 if it does not
 * exist, 126 if it cannot run, 125 for a mistake in the grate's own command line.
 *
 * The table makes no manifest: nothing holds the grate to it, and inspect knows nothing of it.
 * LIND_HANDLE of lind/grate.h makes one.
 */
int lind_grate_run(const struct lind_handler *handlers, size_t count, int argc, char **argv);

/*
 * To be called before lind_grate_run: the program that the grate starts is started by this handler
 * of spawn, as its clients' are. For a grate with files of its own, which the kernel does not know.
 * The grate is then among those that `start` of the lifecycle is called for.
 */
void lind_starts_by(lind_handle_fn *spawn);

/* The rest is for lind_read, lind_write and their like to be inline: handlers call them all the
 * time. */
__attribute__((import_module("lind"), import_name("call"))) int64_t lind_import_call(int32_t nr, int64_t target,
    uint64_t v0, uint64_t c0, uint64_t v1, uint64_t c1, uint64_t v2, uint64_t c2, uint64_t v3, uint64_t c3, uint64_t v4,
    uint64_t c4, uint64_t v5, uint64_t c5);

extern uint64_t lind_self_;

__attribute__((import_module("lind"), import_name("syscall"))) int64_t lind_import_syscall(
    int32_t nr, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5);

/* Cage 0 would mean our own memory to the call, and to us it is nobody's. */
static inline int lind_read(struct lind_arg arg, void *to, size_t length)
{
	int64_t got = arg.cage ? 0 : -1 /* EPERM */;

	if (length && arg.cage)
		got = lind_import_syscall(
		    SYS_copy_data_between_cages, (uintptr_t)to, arg.value, length, 0, lind_self_, arg.cage);
	return got < 0 ? (int)got : 0;
}

static inline int64_t lind_read_timed(struct lind_arg arg, void *to, size_t length)
{
	if (!arg.cage)
		return -1 /* EPERM */;
	return lind_import_syscall(
	    SYS_copy_data_between_cages, (uintptr_t)to, arg.value, length, 2, lind_self_, arg.cage);
}

static inline int lind_write(struct lind_arg arg, const void *from, size_t length)
{
	int64_t got = arg.cage ? 0 : -1 /* EPERM */;

	if (length && arg.cage)
		got = lind_import_syscall(
		    SYS_copy_data_between_cages, arg.value, (uintptr_t)from, length, 0, arg.cage, lind_self_);
	return got < 0 ? (int)got : 0;
}

#define LIND_FILTER_ARGS_ \
	__attribute__((unused)) uint32_t client, __attribute__((unused)) uint32_t nr, \
	    __attribute__((unused)) uint64_t a0, __attribute__((unused)) uint64_t a1, \
	    __attribute__((unused)) uint64_t a2, __attribute__((unused)) uint64_t a3, \
	    __attribute__((unused)) uint64_t a4, __attribute__((unused)) uint64_t a5

#ifdef __OPTIMIZE__
#define LIND_FILTER_(handler) \
	__attribute__((export_name("__lind_filtered"))) uint32_t lind_filtered_(void); \
	uint32_t lind_filtered_(void) \
	{ \
		return (uint32_t)(uintptr_t)(handler); \
	} \
	__attribute__((export_name("__lind_filter"))) int64_t lind_filter_(LIND_FILTER_ARGS_); \
	int64_t lind_filter_(LIND_FILTER_ARGS_)
#else
#define LIND_FILTER_(handler) static __attribute__((unused)) int64_t lind_filter_(LIND_FILTER_ARGS_)
#endif

extern __thread const struct lind_call *lind_serving_;

/* A changed copy of the call is not what would go on. */
static inline int64_t lind_pass(const struct lind_call *call)
{
	return call == lind_serving_ ? LIND_PASS : lind_forward(call);
}

/* Only the call that the engine wrote has room behind it: for a changed copy of it the data is
 * copied here. */
static inline int64_t lind_answer(
    const struct lind_call *call, int64_t result, struct lind_arg to, const void *from, size_t length)
{
	struct lind_answer *answer = (struct lind_answer *)(uintptr_t)(call + 1);
	int failed;

	if (call != lind_serving_ || !to.cage || !length) {
		failed = lind_write(to, from, length);
		return failed ? failed : result;
	}
	answer->result = result;
	answer->to = to.value;
	answer->cage = to.cage;
	answer->from = (uintptr_t)from;
	answer->length = length;
	answer->release = 0;
	answer->part = 0;
	return LIND_ANSWER;
}

int64_t lind_answer_from_slow_(struct lind_arg to, const void *from, size_t length, int32_t *release);

static inline int64_t lind_answer_from(
    const struct lind_call *call, struct lind_arg to, const void *from, size_t length, int32_t *release)
{
	struct lind_answer *answer = (struct lind_answer *)(uintptr_t)(call + 1);

	if (call != lind_serving_ || !to.cage || !length)
		return lind_answer_from_slow_(to, from, length, release);
	answer->result = (int64_t)length;
	answer->to = to.value;
	answer->cage = to.cage;
	answer->from = (uintptr_t)from;
	answer->length = length;
	answer->release = (uintptr_t)release;
	answer->part = 1;
	return LIND_ANSWER;
}

static inline int64_t lind_dup_to_client(int fd, int cloexec)
{
	return lind_import_syscall(SYS_give_fd, (uint64_t)fd, cloexec ? 02000000 /* O_CLOEXEC */ : 0, 0, 0, 0, 0);
}

#ifdef __cplusplus
}
#endif
#endif
