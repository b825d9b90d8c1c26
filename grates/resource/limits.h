/* Limits: what is used of them, and what happens at the end of one. */
#ifndef RESOURCE_LIMITS_H
#define RESOURCE_LIMITS_H

#include "tables.h"

extern uint64_t limits[SCOPES][WHATS];
extern uint64_t *tree_used, *tree_peak; /* WHATS of them; the second if `learns` */
const char *set_use(const char *path); /* they are in this file from now on */
void note_peak(enum what what);
extern struct rate tree_rates[RATES];
extern uint64_t each_rates[RATES];
/* Amounts come as plain numbers, of nanoseconds or of bytes. */
bool limit_is_time(const char *name);
bool limit_is_bytes(const char *name);
const char *set_limit(enum scope scope, const char *name, const char *amount);
/* Changes limits while programs run: set_limit reads the new ones between these two calls. */
const char *limits_begin(void);
const char *limits_settle(bool applies);
const char *set_rate(enum scope scope, const char *name, const char *amount);
const char *set_action(const char *value);
bool limited(enum what what);
bool any_limit(void); /* or rate */
bool paced(enum what what);
/* Whether what is used is known: it has a limit, or a report is wanted. */
bool counted(enum what what);
enum action action_on(enum what what);
/* Reserves `n`; false if the limit does not allow all of it. Then the limit was told, and
 * `scope` is which. */
bool reserve(struct client *c, enum what what, uint64_t n, enum scope *scope);
void give_back(struct client *c, enum what what, uint64_t n);
/* Up to `n`, at least 1, of one limit; 0 if nothing is left. */
uint64_t grab(enum scope scope, struct client *c, enum what what, uint64_t n);
void drop(enum scope scope, struct client *c, enum what what, uint64_t n);
/* A limit was hit: says so, acts, and returns the negative errno for the call. `wanted` is what
 * did not fit. */
int64_t hit(struct client *c, enum scope scope, enum what what, uint64_t wanted, const char *by);
const char *amount_text(enum what what, uint64_t n, char *text, size_t size);
extern const char *const what_names[WHATS];

#endif
