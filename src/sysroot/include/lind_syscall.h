/*
 * Interposes system calls in the manner of grates written for Lind (docs/lind-grates.md). New
 * grates should use <lind/grate.h>.
 *
 * A grate exports the function through which its handlers are entered:
 *
 *	int pass_fptr_to_wt(uint64_t handler, uint64_t grate, uint64_t arg1, uint64_t arg1cage, ... six
 *	such pairs);
 *
 * `handler` is the number passed to register_handler. A handler returns the system call's result,
 * or the negative of an errno.
 */
#ifndef _LIND_SYSCALL_H
#define _LIND_SYSCALL_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Or'ed to an argument's cage id: the argument is an address in the caller's own memory. */
#define GRATE_MEMORY_FLAG ((uint64_t)1 << 63)

/* The errors of copy_data_between_cages and register_handler, in the low 32 bits of their
 * results. */
#ifndef ELINDAPIABORTED
#define ELINDAPIABORTED 0xE0010001u
#endif
#ifndef ELINDESRCH
#define ELINDESRCH 0xE0010002u
#endif

/* Makes a system call on `target`, each argument belonging to the cage beside it, by the handler
 * table of `self`: the caller, or a descendant of it. `name` is not used. With `translate`, fails
 * as C functions do: -1 and errno. */
int make_threei_call(unsigned int nr, uint64_t name, uint64_t self, uint64_t target,
	uint64_t arg1, uint64_t arg1cage, uint64_t arg2, uint64_t arg2cage, uint64_t arg3, uint64_t arg3cage,
	uint64_t arg4, uint64_t arg4cage, uint64_t arg5, uint64_t arg5cage, uint64_t arg6, uint64_t arg6cage,
	int translate);

/* Sends calls `nr` of `target` to `handler` of `grate`: of the caller for a descendant, or of the
 * parent for a child that was forked and runs no program of its own yet. 0, ELINDESRCH, or the
 * negative of an errno. */
int register_handler(uint64_t target, uint64_t nr, uint64_t grate, uint64_t handler);

/* Copies `len` bytes (type 0), or a string with its NUL of at most that size (type 1). Returns the
 * number of bytes, at most INT_MAX; ELINDAPIABORTED if the copy fails, after which a part may have
 * been copied. `self` and `target` are not used. */
int copy_data_between_cages(uint64_t self, uint64_t target, uint64_t from, uint64_t from_cage,
	uint64_t to, uint64_t to_cage, uint64_t len, uint64_t type);

/* Makes the handler table of `target` equal to that of `source`. 0, ELINDESRCH, or the negative of
 * an errno. */
int copy_handler_table_to_cage(uint64_t source, uint64_t target);

#ifdef __cplusplus
}
#endif
#endif
