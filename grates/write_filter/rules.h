/* Sets of rules, as options give them at the start and the user later. */
#ifndef WRITE_FILTER_RULES_H
#define WRITE_FILTER_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct list {
	char **of;
	size_t count;
};

/* A rule that the user has given meanwhile. The first that is about a path decides. */
struct later {
	enum { GRANT, REFUSE, REVEAL, CONCEAL } what;
	char *pattern;
	uint64_t once;  /* a permission for one use; 0: for any number */
	bool used;
};

/* A set of rules. It stays what it is while somebody holds it. */
struct rules {
	unsigned uses;
	struct list allowed, protected;
	/* As those that are protected, but the directories above may be made, with nothing in them. */
	struct list below;
	/* Names that may be only below certain directories. */
	struct list confined, inside;
	/* Directories below which no name may begin with a dot, but for those that match one of
	 * these patterns. */
	struct list hidden, harmless;
	struct later *later;
	size_t later_count;
};

/* Those that apply now, until they are released. */
struct rules *rules_hold(void);
void rules_release(struct rules *held);

/* Reads others by the functions below, and lets them apply. */
const char *rules_begin(void);
const char *rules_settle(bool applies);
/* Others apply. Whether one of them forbids reading. */
void rules_changed(bool reads);

const char *rules_allow(const char *value);
const char *rules_protect(const char *value);
const char *rules_protect_below(const char *value);
const char *rules_confine(const char *value);
const char *rules_inside(const char *value);
const char *rules_hide(const char *value);
const char *rules_let_be(const char *value);
const char *rules_grant(const char *value);
const char *rules_refuse(const char *value);
const char *rules_reveal(const char *value);
const char *rules_conceal(const char *value);

#endif
