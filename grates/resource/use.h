/*
 * The bytes of one call. It reserves what it may carry at most, waits for its turn where there is a
 * rate, and gives back what it did not carry. A call that may wait for data reserves nothing
 * meanwhile. Where less is left than a call asks for it becomes a short one, as on a disk that gets
 * full; messages and what is written to pipes at once are passed whole or not at all.
 *
 * Which class a descriptor is of is asked for each call. A number that another thread gives to
 * another file meanwhile could be counted in the wrong class: then what was carried counts in all.
 */
#ifndef RESOURCE_USE_H
#define RESOURCE_USE_H

#include "tables.h"

/* The files that a call reads from and writes to. */
struct use {
	struct client *c;
	const struct lind_call *call;
	enum what of[4];
	unsigned count;
	bool waits;  /* for data, and is not to hold what it reserved meanwhile */
	bool whole;  /* or not at all */
	bool directions[2]; /* reads, writes */
	uint64_t changes;
};

void use_begin(struct use *u, struct client *c, const struct lind_call *call);
void use_add(struct use *u, bool writes, enum class class);
/* Finds out what the descriptor is. */
void use_add_fd(struct use *u, bool writes, struct lind_arg fd);
/* Until there is something to read, at most so many milliseconds, or without end if that is -1.
 * 1, 0 if the time is over, or a negative errno. */
int64_t use_wait(const struct use *u, int64_t timeout);
/* How many of `n` bytes may pass now; at least 1. Or the answer to the call, whose flags are
 * those of recv(2). */
int64_t use_admit(const struct use *u, uint64_t n, uint64_t flags);
/* The call carried `used` of the bytes that were admitted. */
void use_carried(const struct use *u, uint64_t admitted, uint64_t used);
/* The same, by its result, which is handed on. */
int64_t use_after(const struct use *u, uint64_t admitted, int64_t r);
/* A call whose argument `length` says how much it carries, and whose result how much it carried. */
int64_t use_limited_call(struct use *u, int length, uint64_t flags);
/* A call that moves all `n` bytes or nothing; its result is not a count. */
int64_t use_whole_call(struct use *u, uint64_t n);
/* Of this class, and so many bytes, whatever the call's descriptor is. */
int64_t use_of_kind(const struct lind_call *call, bool writes, enum class class, uint64_t n);
/* F_GETFL */
int flags_of(const struct lind_call *call, struct lind_arg fd);

#endif
