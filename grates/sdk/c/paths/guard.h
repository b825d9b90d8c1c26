/* The parts of a guard: changes (guard.c), reads (guard_read.c), messages (guard_receive.c). */
#ifndef PATHS_GUARD_H
#define PATHS_GUARD_H

#include <lind/guard.h>

/* Whether a file is in the tree of files that policies are about. */
bool guard_in_a_tree(const struct lind_place *place);

/* Whether it is in the kernel's own /dev, /proc or /sys. */
bool guard_is_kernels(const struct lind_place *place);

/* Whether a rename gives the files in a directory other paths. */
bool guard_moves_a_directory(uint32_t nr, unsigned effect, const struct lind_place *place);

/* Whether a guard lets a call read what it found. A call that gives a file another name counts as
 * one that reads it. Tells the host of what it denies. */
int guard_may_read(
    const struct lind_guard *guard, const struct lind_call *c, unsigned effect, const struct lind_place *place);

/* Whether clients may have a descriptor of the grate's, as far as reading goes. */
bool guard_may_read_fd(const struct lind_guard *guard, int fd);

/* Whether a client may have a descriptor that a message has brought to the grate. */
bool guard_may_have(int fd);

#endif
