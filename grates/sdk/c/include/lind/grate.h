/*
 * Writing a grate in C: a program that answers system calls of other cages, by handlers with C
 * arguments.
 *
 *	#include <lind/grate.h>
 *
 *	LIND_HANDLE(alters, openat);
 *
 *	static int64_t on_openat(
 *	    const struct lind_call *cx, int dir, const char *path, int flags, mode_t mode)
 *	{
 *		if (strstr(path, "secret"))
 *			return -EACCES;
 *		return lind_forward_openat(cx, dir, path, flags, mode);
 *	}
 *
 *	int main(int argc, char **argv) { return lind_grate_main(argc, argv); }
 *
 * A handler returns what the system call returns: a value, or the negative of an errno. There are
 * three ways to let the call go on:
 *
 *	return lind_forward_openat(cx, ...);	changed: with these arguments
 *	r = lind_forward(cx);			unchanged, and the result is wanted
 *	return lind_pass(cx);			unchanged, and the handler is done
 *
 * lind_forward_NAME is for any NAME: in the handler of another call it makes that call on the
 * client. A descriptor then belongs to the owner of the argument that `cx` has in the same place.
 *
 * Paths, strings, socket addresses and small structs are in the grate's memory when the handler is
 * called: they were copied once, and lind_forward_openat sends that copy on, so a client that
 * changes its memory between the handler's decision and the call changes nothing. A call that goes
 * on unchanged is read again, from the client: a handler that has decided about a path or a struct
 * uses lind_forward_NAME. A call whose strings cannot be copied fails (EFAULT, ENAMETOOLONG)
 * without the handler. Results that the call writes, byte buffers, arrays, and structs with
 * pointers stay in the client, as `struct lind_arg`: lind_read and lind_write reach them. A size
 * beyond `size_t` reads as SIZE_MAX, for which every call fails as well.
 *
 * `cx` is the call as it came: cx->target is the client, cx->args[0].cage the cage that the first
 * argument belongs to. Handlers run at the same time on the threads of the clients, each with a
 * stack and an errno of its own: they lock what they share, with pthread mutexes for example.
 *
 * lind/typed_calls.h lists the handlers of all calls, lind/raw.h has the functions that handlers
 * use, lind/clients.h the state of clients, lind/options.h options and messages.
 */
#ifndef LIND_GRATE_H
#define LIND_GRATE_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lind/raw.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
#include <utime.h>

/* In musl's headers these are macros, which would give LIND_HANDLE another call's name. */
#undef getdents64
#undef pread64
#undef prlimit64
#undef pwrite64

/*
 * LIND_HANDLE(VERB, NAME) says at the top of a file that it has a handler on_NAME, and what that
 * may do: it `answers` the call itself, `alters` it (or refuses it), or `observes` it. These lines
 * make the list that lind_grate_main registers, and the grate's manifest, beyond which the kernel
 * lets it register nothing.
 *
 * LIND_HANDLE(VERB, NAME, HANDLER) names a handler that takes the call alone, int64_t
 * HANDLER(const struct lind_call *), for any number of calls: nothing is copied. With NULL the
 * handler is chosen when the grate starts (lind_grate_choose).
 *
 * NAME may be `any`: every call that has no line of its own, except exit, exit_group, rt_sigreturn
 * and the numbers from 1000 to 1099.
 */
#define LIND_HANDLE(...) LIND_PICK_(__VA_ARGS__, LIND_ENTRY_, LIND_TYPED_, )(__VA_ARGS__)

/* Starts argv[1] with the handlers that are listed, waits for it, and returns the status to exit
 * with: see lind_grate_run in lind/raw.h. */
int lind_grate_main(int argc, char **argv);

/* Leaves a call out of what lind_grate_main registers, where an option makes its handler
 * needless. */
void lind_grate_without(uint32_t nr);

/*
 * A grate in parts, which its options choose. LIND_HANDLE_OF(PART, VERB, NAME[, HANDLER]) says the
 * same as LIND_HANDLE of a handler that is registered only if lind_grate_part(PART) was called
 * before lind_grate_main. Each part may have one handler of a call. If several parts have one, that
 * of the part which was added last is registered. lind_below(PART, cx) serves `cx`, which may be a
 * changed copy, as the grate would without PART and all parts that were added after it: by the
 * handler of an earlier part or of a LIND_HANDLE, or by lind_forward.
 *
 *	LIND_HANDLE_OF(memory, alters, shmget);
 *	...
 *	if (limits_memory)
 *		lind_grate_part(memory);
 */
#define LIND_HANDLE_OF(...) LIND_PICK_OF_(__VA_ARGS__, LIND_ENTRY_OF_, LIND_TYPED_OF_, )(__VA_ARGS__)
#define lind_grate_part(part) \
	do { \
		LIND_PART_(part); \
		lind_add_part_(__start_lind_part_##part, __stop_lind_part_##part); \
	} while (0)
#define lind_below(part, cx) \
	({ \
		LIND_PART_(part); \
		lind_below_(__start_lind_part_##part, cx); \
	})

/*
 * Handlers that options decide about. lind_grate_main asks `choose` about LIND_NR_ANY and every
 * number below LIND_NUMBERS for which no line has a handler. The result is the handler, or NULL for
 * a call that does not enter the grate.
 */
void lind_grate_choose(lind_handle_fn *(*choose)(uint32_t nr));

/* The rest is for LIND_HANDLE and lind/typed_calls.h. */
#define SYS_any LIND_NR_ANY

enum lind_verb_ { LIND_answers_, LIND_alters_, LIND_observes_ };

#define LIND_PICK_(verb, name, handle, picked, ...)          picked
#define LIND_PICK_OF_(part, verb, name, handle, picked, ...) picked

#define LIND_LISTED_(list, verb, name, handle) \
	__asm__(".section .custom_section.lind.grate,\"\",@\n" \
		".asciz \"" #verb " " #name "\"\n" \
		".text\n"); \
	_Static_assert(LIND_##verb##_ >= 0, "a verb"); \
	__attribute__((section(#list), used)) static const struct lind_handler list##_##name = { SYS_##name, handle }

#define LIND_RUN_(name) \
	static lind_##name##_fn on_##name; \
	static int64_t lind_run_##name(const struct lind_call *cx) \
	{ \
		return lind_take_##name(cx, on_##name); \
	}

#define LIND_ENTRY_(verb, name, handle) LIND_LISTED_(lind_handlers, verb, name, handle)

#define LIND_TYPED_(verb, name) LIND_RUN_(name) LIND_ENTRY_(verb, name, lind_run_##name)

#define LIND_ENTRY_OF_(part, verb, name, handle) LIND_LISTED_(lind_part_##part, verb, name, handle)

#define LIND_TYPED_OF_(part, verb, name) LIND_RUN_(name) LIND_ENTRY_OF_(part, verb, name, lind_run_##name)

/* The ends of a part's list, which the linker names. */
#define LIND_PART_(part) extern const struct lind_handler __start_lind_part_##part[], __stop_lind_part_##part[]

void lind_add_part_(const struct lind_handler *begin, const struct lind_handler *end);
int64_t lind_below_(const struct lind_handler *part, const struct lind_call *cx);

typedef lind_handle_fn lind_any_fn;

static inline int64_t lind_take_any(const struct lind_call *cx, lind_any_fn *on)
{
	return on(cx);
}

/* 0 or the negative of an errno. */
static inline int lind_take_string_(const struct lind_arg *arg, char *to, int too_long)
{
	ssize_t r = lind_read_string(*arg, to, PATH_MAX);

	return r >= 0 ? 0 : r == -ENAMETOOLONG ? -too_long : (int)r;
}

static inline int lind_take_string_or_null_(const struct lind_arg *arg, char *to, int too_long)
{
	return arg->value ? lind_take_string_(arg, to, too_long) : 0;
}

static inline int lind_take_struct_(const struct lind_arg *arg, void *to, size_t size)
{
	return arg->value ? lind_read(*arg, to, size) : 0;
}

/* Zeros follow the address, so that a path in it ends. */
static inline int lind_take_address_(const struct lind_arg *arg, uint64_t length, struct sockaddr_storage *to)
{
	uint32_t n = (uint32_t)length;

	if (!arg->value)
		return 0;
	if (n > sizeof *to)
		return -EINVAL;
	memset(to, 0, sizeof *to);
	return lind_read(*arg, to, n);
}

static inline size_t lind_size_(uint64_t value)
{
	return value > SIZE_MAX ? SIZE_MAX : (size_t)value;
}

#include <lind/typed_calls.h>

#endif
