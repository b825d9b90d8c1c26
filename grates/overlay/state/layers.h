/* Snapshots of a state, and other heads of it. All three are a few rows, however much has
 * changed. */
#ifndef OVERLAY_LAYERS_H
#define OVERLAY_LAYERS_H

#include "store.h"

/* Gives the changes so far a name; later changes go to a layer above. -EEXIST: there is one. */
int store_snapshot(struct store *store, const char *name);
/* The head shows its content at that snapshot again. -ENOENT: there is none. NULL: the lower
 * directory as it is. */
int store_rollback(struct store *store, const char *name);
/* Another head, which shows what this one does. -EEXIST: there is one. */
int store_fork(struct store *store, const char *name);

struct store_layer {
	int64_t layer, parent;  /* parent 0: none */
	const char *snapshot, *head; /* or NULL */
	struct timespec made;
};

/* Layers from the oldest on, once for each head that is on top of it. */
int store_layers(struct store *store, int (*each)(void *to, const struct store_layer *layer), void *to);

/* Its number at the last run, by which it is known to be the same; 0: that is not known. */
uint64_t store_lower_ino(struct store *store);
int store_lower_is(struct store *store, uint64_t ino);

/* Removes the rows of layers that neither a head nor a snapshot needs. */
int store_tidy(struct store *store);

/* How many files the head has changed, made, removed or renamed; or an error. */
int64_t store_changes(struct store *store);

/* The user's name for the lower directory; to be freed. NULL: the state does not say. */
char *store_lower(struct store *store);

/* The number of the last line of the log, by which it is known whether a run has changed the
 * state. */
int64_t store_log_end(struct store *store);

struct store_log_line {
	struct timespec at;
	const char *command, *path, *other; /* command and other: or NULL */
	char kind;
};

/* The log lines of the head, the oldest first. */
int store_log_lines(struct store *store, int (*each)(void *to, const struct store_log_line *line), void *to);

#endif
