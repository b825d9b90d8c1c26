/*
 * The namespace grate: which calls of the program enter the grates between its `%{` and `%}`.
 *
 * A descriptor is inside if a call that entered made it, or if it is a copy of one that is. A path
 * is inside if it leads to a prefix or below. The descriptors of a client are kept in words that a
 * call reads without a lock.
 *
 * All files of the grate use this header, which uses none of them.
 */
#ifndef NAMESPACE_TABLES_H
#define NAMESPACE_TABLES_H

#include <errno.h>
#include <limits.h>
#include <lind/compose.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { INSIDE = 1, HELD = 2, LETTING = 4, WORD_STEP = 8, WORD_COUNT = 0x7ffffff8 };

#define AT_WORK 64

struct client {
	_Atomic uint64_t cage;  /* 0 between two of them */
	/* A word for each of LIND_FDS descriptors: INSIDE or HELD, LETTING, and the stamp of its last
	 * change. The kernel looks here before it enters on_fd, and enters it for LIND_FD_ASK. A word
	 * has LIND_FD_ASK while threads change descriptors outside, and where the kind decides and is
	 * not known. */
	_Atomic uint32_t *fds;
	_Atomic uint32_t fds_end; /* above all that was ever inside */
	_Atomic uint32_t fds_seen; /* above all that was ever made, where what they are decides */
	_Atomic uint32_t stamp;  /* of the last change of a word, which holds it */
	atomic_bool mapped;  /* has mapped a file that is inside */
	atomic_bool owns;  /* has or had descriptors inside */
	atomic_bool threads;  /* had more than one since it was started */
	atomic_uint making, moving; /* calls under way that may make a descriptor inside; the second do not wait */
	_Atomic uint32_t at_work[AT_WORK], tickets; /* a ticket for each of them, or 0; WAITS if it may wait for long */
	atomic_uint crowd; /* those for which there was no place */
	atomic_uint letting, frozen; /* calls under way that let go of numbers; and those during which nobody may */
	pthread_mutex_t lock; /* of what follows, and while somebody else marks what matches */
	bool cwd_inside;
	char *cwd; /* where, if it is known */
	struct client *next_free, *next; /* among those without a cage; among all */
};

/* The kinds of options that were given. */
extern bool by_path, by_net, by_fd;
/* Part of by_fd: kinds or flags of descriptors; and flags that may change. */
extern bool by_property, flags_change;

/* It has a lock and words from then on, and keeps them. */
void client_add(struct client *client);
/* `end` is above all descriptors that it may have. */
void each_client(void (*one)(struct client *client, uint32_t end));
void client_cwd(struct client *client, bool inside, const char *path);

static inline uint32_t fd_word(const struct client *client, uint32_t fd)
{
	return client && fd < LIND_FDS ? atomic_load_explicit(&client->fds[fd], memory_order_acquire) : 0;
}

/* A word's next value, with a stamp of its own. */
uint32_t next_word(struct client *client, uint32_t bits);
void fd_set_word(struct client *client, uint32_t fd, uint32_t bits);
void fd_mark(struct client *client, uint64_t fd); /* as inside */
/* Of a number that nothing is known about. */
uint32_t unknown_word(void);
/* The stamp before a call that makes a descriptor outside: see fd_outside. */
uint32_t fd_since(const struct client *client);
/* Above all that were ever inside or looked at. */
uint32_t fds_end(const struct client *client);

static inline int64_t enter(const struct lind_call *c)
{
	return lind_enter(0, c);
}

static inline int64_t pass(const struct lind_call *c, bool inside)
{
	return inside ? enter(c) : lind_forward(c);
}

#endif
