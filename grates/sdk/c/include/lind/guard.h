/*
 * A guard over files: a policy that lets clients read and change only some. The grate says which
 * paths may be read and changed; this handles every call that reads or changes a file, by path, by
 * descriptor or by address, and the ways in which descriptors reach a client without a path: by
 * inheritance and in messages.
 *
 *	static bool may_read(const char *path) { return !lind_path_below(path, "/home/me/.ssh"); }
 *
 *	LIND_READ_GUARD_CALLS
 *
 *	int main(int argc, char **argv)
 *	{
 *		static const struct lind_guard guard = { .may_read = may_read };
 *		lind_guard_begin(&guard);
 *		return lind_grate_main(argc, argv);
 *	}
 *
 * A guard with may_change alone has LIND_GUARD_CALLS, in which calls that only read cost nothing.
 * Nobody gets a descriptor of what may not be read or changed, so reading and writing themselves
 * cost nothing.
 *
 * A file that may not be read also gets no other name: it is not linked or moved, nor is a
 * directory that has it below. Attributes (stat) and the texts of links can be seen.
 */
#ifndef LIND_GUARD_H
#define LIND_GUARD_H

#include <lind/paths.h>
#include <lind/grate.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Beside LIND_DOES_CREATE or LIND_DOES_REMOVE: the directory that is made or removed has nothing in
 * it, as by mkdir and rmdir. */
#define LIND_DOES_EMPTY 1024

struct lind_guard {
	/* Whether clients may read a file, list a directory, or execute a program, by its path as
	 * below; refused with EACCES. NULL allows all. Takes LIND_READ_GUARD_CALLS. */
	bool (*may_read)(const char *path);
	/* Says whether a change may happen to a path, which begins with a slash and has no links in it.
	 * NULL allows all changes. */
	bool (*may_change)(const char *path, unsigned effect);
	/* May be NULL: a change that may happen is going to. False if it may not after all, because
	 * what allowed it was for one use. */
	bool (*take)(const char *path, unsigned effect);
	int refusal; /* the errno for clients */
	/* May be NULL: whether what is in a directory may be moved with it, as far as the directory
	 * alone can tell. */
	bool (*may_move_all_in)(const char *directory);
	/* May be NULL: why it may not, for who reads of it. */
	const char *(*why)(const char *path, unsigned effect);
	/* Whether the descriptors that the grate was started with stay as they are: the user has
	 * opened them for the program. */
	bool keeps_given;
};

/* Comes before lind_grate_main, which ends a grate that does not list the calls of its guard.
 * Takes write access from the descriptors that the grate was started with, and so from its
 * clients, where it may not be had, unless `keeps_given` is set. */
void lind_guard_begin(const struct lind_guard *guard);

/* Calls that change nothing whatever their path is, by arguments that the client cannot change
 * any more. */
bool lind_guard_changes_nothing(uint32_t nr, uint64_t a1, uint64_t a2);

int64_t lind_guard_path(const struct lind_call *c);
int64_t lind_guard_exec(const struct lind_call *c);
int64_t lind_guard_fd(const struct lind_call *c);
int64_t lind_guard_bind(const struct lind_call *c);
int64_t lind_guard_receive(const struct lind_call *c);

#define LIND_GUARD_PATH_(name) LIND_HANDLE(alters, name, lind_guard_path);
#define LIND_GUARD_FD_(name)   LIND_HANDLE(alters, name, lind_guard_fd);
#define LIND_GUARD_ALL_ \
	LIND_EACH_CHANGING_PATH_CALL(LIND_GUARD_PATH_) \
	LIND_EACH_CHANGING_FD_CALL(LIND_GUARD_FD_) \
	LIND_GUARD_PATH_(access) \
	LIND_GUARD_PATH_(faccessat) \
	LIND_GUARD_PATH_(faccessat2) \
	LIND_GUARD_PATH_(chroot) \
	LIND_HANDLE(alters, bind, lind_guard_bind); \
	LIND_HANDLE(alters, recvmsg, lind_guard_receive); \
	LIND_HANDLE(alters, recvmmsg, lind_guard_receive);

/* The calls of a guard that has may_change alone: a call that only reads costs no hop. */
#define LIND_GUARD_CALLS \
	LIND_GUARD_ALL_ \
	LIND_FILTER(lind_guard_path) \
	{ \
		return lind_guard_changes_nothing(nr, a1, a2) ? LIND_PASS : LIND_ASK; \
	}

/* The calls of a guard that has may_read, with or without may_change. */
#define LIND_READ_GUARD_CALLS \
	LIND_GUARD_ALL_ \
	LIND_HANDLE(alters, execve, lind_guard_exec); \
	LIND_HANDLE(alters, execveat, lind_guard_exec); \
	LIND_HANDLE(alters, spawn, lind_guard_exec);

#ifdef __cplusplus
}
#endif
#endif
