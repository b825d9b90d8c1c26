/*
 * The fault grate, between its files: rules that say which calls fail, come short or late.
 *
 * Whether a rule fires at its n-th call is a function of the seed, the rule and n, and of nothing
 * else.
 */
#ifndef FAULT_H
#define FAULT_H

#include <lind/grate.h>
#include <stdbool.h>

#define MOST_RULES 64
#define MOST_CALLS 512

enum kind { ANY_KIND, FILE_KIND, DIR_KIND, PIPE_KIND, INET_KIND, UNIX_KIND, DEVICE_KIND, OTHER_KIND };

struct rule {
	char text[160];   /* as it was written */
	uint8_t calls[MOST_CALLS / 8];
	const char *path;  /* a pattern, or NULL */
	const char *program;
	enum kind kind;
	bool each;   /* counts separately for each client */
	uint64_t skip, every, times;
	double chance;
	/* The effect of the rule. */
	int error;
	uint64_t short_to;  /* bytes; 0 if it does not shorten */
	unsigned short_percent;
	int64_t delay, delay_to; /* nanoseconds */
	/* Of all clients: */
	uint64_t seen, fired;
};

struct client {
	uint64_t lineage;  /* the same in every run: from the birth order of it and its ancestors */
	uint64_t children;
	char name[48];   /* of its program */
	char next_name[48];
	struct {
		uint64_t seen, fired;
	} of[MOST_RULES];
};

extern struct rule rules[MOST_RULES];
extern unsigned rule_count;
extern uint64_t seed;
const char *rule_add(const char *text);
const char *rules_load(const char *path);

/* Which arguments a call has, or -1: its length (which `short` changes), its descriptor, its
 * path, and the directory of that. */
struct shape {
	int8_t length, fd, path, dir;
	bool pieces, message;
};
struct shape shape_of(uint32_t nr);

/* Whether the rule is about this call, of which the number is known to be. `subject` gets what
 * it is about, for the log. */
bool rule_matches(
    const struct rule *r, const struct client *c, const struct lind_call *call, char *subject, size_t size);

#endif
