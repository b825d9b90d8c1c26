/*
 * The steps by which changes are made in the lower directory. If apply ends early, the next one can
 * go on.
 *
 *   1. All new contents are written to files `.lind-apply-RANDOM-NUMBER` at the top. The state says
 *      so (`writing`).
 *   2. The state lists the file for each place (`placing`): from then on the changes are made, by
 *      this apply or by the next.
 *   3. Files that go or move are set aside, to names at the top too; then everything gets its
 *      place. Each step can be taken twice: the files that are there show whether it was taken.
 *   4. In one transaction the changes leave the state, and it says `cleaning`.
 *   5. Remaining names at the top are removed.
 *
 * A change that is not possible, or that would replace another file than the one that was seen,
 * fails alone and stays in the state.
 */
#ifndef OVERLAY_VERB_APPLY_H
#define OVERLAY_VERB_APPLY_H

#include "tree.h"

/* The way in which one change is made. */
enum deed { NOTHING, MADE, MOVES, LINKS, DEEDS };

struct work {
	enum deed deed;
	size_t number;  /* in the names at the top */
	bool failed;  /* it stays in the state */
	bool
	    unfinished; /* it is there, but stays in the state: a directory that is not as it should be, or not all that is in it; a file of
				 * which not all names are there */
	const char *same; /* of LINKS: the path that has the file */
};

struct apply {
	struct store *store;
	struct verb_list *list;
	struct work *work; /* of each change */
	char random
	    [17]; /* part of the names at the top: nobody who made the changes could know it, and no run before this one has left it there */
	bool again; /* this goes on with what was begun before */
	bool all; /* nothing stays in the state, unless something fails */
	bool placed, finished; /* what is not refused is in the directory; and the state is done with it */
	bool stuck; /* something that was set aside can neither go on nor back */
	size_t failed;
	struct verb_map moves, gone; /* directories that are moved and removed, by where they were */
};

#define APPLY_TEMPORARY ".lind-apply-"
/* The names at the top while a change is made: of the new file, and of the old one. Valid until
 * the next call. */
const char *apply_new(const struct apply *apply, size_t i);
const char *apply_aside(const struct apply *apply, size_t i);

/* make.c: `made` is a name at the top. */
int apply_make(struct store *store, const struct store_node *row, const char *made);
int apply_remove(const char *path);
int apply_attributes(const char *path, const struct store_node *row);
void apply_index(struct apply *apply);

/* place.c: makes what is planned. */
void apply_fail(struct apply *apply, size_t i, int error);
/* Keeps a removed directory if a file below it cannot go elsewhere. */
void apply_keep_sources(struct apply *apply);
void apply_place(struct apply *apply);
void apply_keep_above(
    const struct apply *apply, uint64_t dir); /* something in this directory of the state stays there */
/* Where something is that was at this path below; NULL: where it was. The caller frees it. */
char *apply_moved(const struct apply *apply, const char *path);

/* leave.c: what has been made leaves the state, all that was meant if `apply` is NULL; not
 * committed unless all of it does. */
int apply_leave(struct store *store, const struct verb_list *list, const struct apply *apply);

/* journal.c: what the state says of an apply that is not at its end. */
int journal_begin(struct apply *apply);
int journal_plan(struct apply *apply);
int journal_clean(struct apply *apply); /* a part of the transaction in which the changes leave the state */
int journal_end(struct apply *apply);
/* 0: there is none; 1: `writing` or `cleaning`; 2: `placing`, which is read to an empty list. Or
 * an error. */
int journal_read(struct apply *apply);
/* Removes what is left at the top; whether that was all of it. */
bool journal_sweep(const struct apply *apply);

#endif
