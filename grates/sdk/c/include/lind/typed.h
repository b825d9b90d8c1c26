/*
 * Handlers with C arguments, one for each system call:
 *
 *	#include <lind/typed.h>
 *
 *	LIND_ON(openat);
 *
 *	static long on_openat(struct lind_cx *cx, int dir, const char *path, int flags, mode_t mode)
 *	{
 *		if (strstr(path, "secret"))
 *			return -EACCES;
 *		return lind_forward_openat(cx, dir, path, flags, mode);
 *	}
 *
 *	int main(int argc, char **argv) { return lind_grate_main(argc, argv); }
 *
 * Paths, strings, socket addresses and small structs are in the grate's memory when the handler is
 * called: they were copied once, and lind_forward_openat sends that copy on, so a client that
 * changes its memory between the handler's decision and the call changes nothing. A call whose
 * strings cannot be copied fails (EFAULT, ENAMETOOLONG) without the handler. Results that the call
 * writes, byte buffers, arrays, and structs with pointers stay in the client, as `struct lind_arg`:
 * lind_read and lind_write reach them. A size beyond `size_t` reads as SIZE_MAX, for which every
 * call fails as well.
 *
 * Handlers are `long`, where results need 64 bits `int64_t`. lind/typed_calls.h lists them all.
 */
#ifndef LIND_TYPED_H
#define LIND_TYPED_H

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lind/grate.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <utime.h>

/* The call that a handler serves. */
struct lind_cx {
	const struct lind_call *call; /* as it came: addresses are the client's */
	uint64_t caller;  /* who makes it: a client, or a grate that forwards for one */
	uint64_t target;  /* whose state it acts on */
	int passes;   /* see lind_pass_as_is */
};

/* Passes the call on as it came. Memory behind its pointers is read again, from the client:
 * after a decision about a path or a struct use lind_forward_NAME instead. */
static inline int64_t lind_forward_as_is(struct lind_cx *cx)
{
	return lind_forward(cx->call);
}

/* The same, when the handler has returned what this returns: see lind_pass. */
static inline long lind_pass_as_is(struct lind_cx *cx)
{
	cx->passes = 1;
	return 0;
}

static inline int64_t lind_result_(const struct lind_cx *cx, int64_t result)
{
	return cx->passes ? lind_pass(cx->call) : result;
}

/* The cage whose memory or descriptors argument `i` refers to: the client's, or those of a grate
 * that acts for it. */
static inline uint64_t lind_owner(struct lind_cx *cx, int i)
{
	return cx->call->args[i].cage;
}

/* The state of the client that the call acts on (see lind_grate_lifecycle). */
static inline void *lind_cx_client(struct lind_cx *cx)
{
	return lind_client(cx->target);
}

/*
 * One line at the top of a file says that it has a handler on_NAME, and what that may do: answer
 * the call itself, pass it on altered (or refuse it), or only observe it. The lines make the list
 * that lind_grate_main registers, and the grate's manifest, beyond which the kernel lets it
 * register nothing.
 */
#define LIND_ON(name)       LIND_ANSWERS(name)
#define LIND_ANSWERS(name)  LIND_LISTED_("answers", name)
#define LIND_ALTERS(name)   LIND_LISTED_("alters", name)
#define LIND_OBSERVES(name) LIND_LISTED_("observes", name)

/* The same for a handler of the untyped kind: int64_t handle(const struct lind_call *). `verb`
 * is a string. */
#define LIND_RAW(verb, name, handle) \
	LIND_DECLARE(verb, name); \
	LIND_ENTRY_(name, handle)

/* Only a line of the manifest, for a call that is registered in another way. `any` stands for
 * LIND_NR_ANY. */
#define LIND_DECLARE(verb, name) \
	__asm__(".section .custom_section.lind.grate,\"\",@\n" \
		".asciz \"" verb " " #name "\"\n" \
		".text\n")

/* Starts argv[1] with the handlers that are listed, as lind_grate_run does. */
int lind_grate_main(int argc, char **argv);

/* Leaves a call out of what lind_grate_main registers, where an option makes its handler
 * needless. */
void lind_grate_without(uint32_t nr);

#define LIND_ENTRY_(name, handle) \
	__attribute__((section("lind_handlers"), \
	    used)) static const struct lind_handler lind_listed_##name = { SYS_##name, handle }

#define LIND_LISTED_(verb, name) \
	static lind_##name##_fn on_##name; \
	static int64_t lind_run_##name(const struct lind_call *c) \
	{ \
		return lind_take_##name(c, on_##name); \
	} \
	LIND_DECLARE(verb, name); \
	LIND_ENTRY_(name, lind_run_##name)

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
