/*
 * One client's descriptors with a state: numbers, references, and who must wait for whom. Knows
 * nothing of calls.
 *
 * Two kinds of change exclude each other. Growing: a number for a file with a state is being made,
 * and the kernel has it before we do. Frozen: the kernel copies the table (fork, spawn) or reads it
 * (messages), and what it saw must still be what we know afterwards, so nothing with a state may
 * come or go.
 */
#ifndef LIND_FDTABLE_H
#define LIND_FDTABLE_H

#include <lind/fds.h>
#include <pthread.h>
#include <stdbool.h>

struct fd_entry {
	struct lind_fd_state *state;
	uint32_t generation; /* changes with the state */
	bool cloexec;
	bool doubtful;  /* an exec closes it, now or in a moment: only fstat can say */
};

struct fd_table {
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct fd_entry *entries;
	uint32_t room;
	uint32_t growing, frozen;
};

struct fd_table *fd_table_new(void);
void fd_table_free(struct fd_table *t);

/* Takes the entries of `from`. 0 or -ENOMEM. */
int fd_table_copy(struct fd_table *t, struct fd_table *from);

/* 0, -ENOMEM, or -EBADF for a number that no descriptor has. Takes a reference of its own. The
 * generation changes whatever the state was. */
int fd_table_set(struct fd_table *t, uint32_t fd, struct lind_fd_state *state, bool cloexec);

/* The entry, its state with a reference. With `wait`, as it is when nothing grows. */
struct fd_entry fd_table_get(struct fd_table *t, uint32_t fd, bool wait);

/* Clears what has not changed since `generation`. */
void fd_table_clear(struct fd_table *t, uint32_t fd, uint32_t generation);

/* Marks what has a state in this range as doubtful. Whether there was anything; the generation
 * of the last. */
bool fd_table_doubt(struct fd_table *t, uint32_t first, uint32_t last, uint32_t *generation);

void fd_table_cloexec(struct fd_table *t, uint32_t fd, bool cloexec);
void fd_table_exec(struct fd_table *t);

void fd_table_grow(struct fd_table *t);
void fd_table_grown(struct fd_table *t);
void fd_table_freeze(struct fd_table *t);
void fd_table_thaw(struct fd_table *t);

/* Runs when the last reference is dropped. */
extern void (*fd_state_drop)(struct lind_fd_state *state);

#endif
