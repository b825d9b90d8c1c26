/* The seccomp grate: what its files share. */
#ifndef SECCOMP_H
#define SECCOMP_H

#include <lind/raw.h>
#include <lind/paths.h>
#include <lind/syscall_table.h>
#include <limits.h>
#include <stdbool.h>
#include <sys/socket.h>

/* From the mildest to the strictest. */
enum action { ALLOW, LOG, DENY, KILL };

/* One rule of a policy. */
struct rule {
	enum action action;
	int error;   /* of DENY */
	const char *where;  /* FILE:LINE or the like; NULL if nobody wrote it */
	const char *comment;  /* or NULL */
};

enum op { MASKED, WITHIN, ONE_OF };

/* A test of one argument. MASKED: (v & a) == b. WITHIN: a <= v <= a + b. ONE_OF: among `b`
 * sorted values from `a` on. */
struct condition {
	uint8_t arg;
	uint8_t op;
	bool negated;
	bool narrow;   /* the low 32 bits, as the kernel takes an int */
	bool has_sign;   /* those stand for a negative number if their top bit is set */
	uint32_t ignored;  /* bits that make no difference */
	uint64_t bias;   /* makes signed numbers ordered when compared without sign */
	uint64_t a, b;
};

/* An address that a rule names. */
struct address {
	int family;   /* AF_INET, AF_INET6, AF_UNIX; 0: any address of the first two */
	uint8_t bytes[16];
	unsigned prefix;
	uint16_t first_port, last_port;
	const char *name;  /* AF_UNIX: a pattern; @ in front: the abstract namespace */
};

/* The patterns of a rule for data in the client's memory. */
struct patterns {
	bool of_paths, of_addresses; /* there is a list, even if nothing is in it */
	bool unnamed;   /* holds also for what is in no directory: pipes, sockets, memory */
	const char **paths;
	size_t path_count;
	struct address *addresses;
	size_t address_count;
};

/* One rule as it concerns one call: it applies if all conditions hold and what is read matches. */
struct step {
	const struct rule *rule;
	const struct patterns *patterns;
	uint32_t first, count;  /* conditions */
	enum action action;
	bool last;   /* applies to whatever gets here */
};

/* steps.c: building the table, then deciding by it. */
#define NUMBERS 1100u

void add_step(uint32_t nr, const struct rule *rule, const struct condition *conditions, size_t count,
    const struct patterns *patterns);
/* Unconditional steps come before the others, as in libseccomp. */
void unconditional_first(void);
void finish_steps(const struct rule *otherwise);
uint64_t add_values(uint64_t *values, size_t count);

extern const struct step *steps_of_[NUMBERS + 1];
extern const struct condition *conditions_;
extern const uint64_t *values_;

/* The steps of a call; the last of them always applies. */
static inline const struct step *steps_of(uint32_t nr)
{
	return steps_of_[nr < NUMBERS ? nr : NUMBERS];
}

bool among(const struct condition *c, uint64_t v);

static inline uint64_t taken(const struct condition *c, uint64_t v)
{
	if (c->narrow)
		v = c->has_sign ? (uint64_t)(int64_t)(int32_t)v : (uint32_t)v;
	return (v & ~(uint64_t)c->ignored) ^ c->bias;
}

/* Of an argument. */
static inline bool holds(const struct condition *c, uint64_t v)
{
	bool result;

	v = taken(c, v);
	if (c->op == MASKED)
		result = (v & c->a) == c->b;
	else if (c->op == WITHIN)
		result = v - c->a <= c->b;
	else
		result = among(c, v);
	return result != c->negated;
}

static inline bool all_hold(const struct step *s, const struct lind_call *call)
{
	for (uint32_t i = 0; i < s->count; i++)
		if (!holds(&conditions_[s->first + i], call->args[conditions_[s->first + i].arg].value))
			return false;
	return true;
}

/* The step that would have allowed the call, were it about another path, or were its argument
 * `*other` another. NULL if there is none. `path` is where it leads, if that is known. */
const struct step *nearest(const struct lind_call *c, const char *path, const struct lind_param **other);

/* The step for a call by its rules, but for conditions that look into memory. */
static inline const struct step *decide(const struct lind_call *call)
{
	const struct step *s = steps_of(call->nr);

	while (!s->last && !all_hold(s, call))
		s++;
	return s;
}

/* Whether calls of this number need no decision, and whether one depends on memory. */
bool always(uint32_t nr, enum action *action);
bool looks(uint32_t nr);
/* Whether a rule, not the default, speaks of this number. */
bool ruled(uint32_t nr);

/* values.c: how values and calls are written. */
const struct lind_syscall *call_named(const char *name);
bool narrow_kind(enum lind_kind kind);
bool signed_kind(enum lind_kind kind);
bool value_named(const char *text, const struct lind_param *param, uint64_t *value);
struct condition compare(const struct lind_param *param, unsigned arg); /* as the kernel takes that argument */
void set_within(struct condition *c, uint64_t low, uint64_t high);
/* Whether a call takes a path, or an address to send to. */
bool has_path(const struct lind_syscall *row);
bool has_address(const struct lind_syscall *row);

/* family.c: calls that do what another does, perhaps that one among them. Ends with 0, which is
 * read's number, and that is never one of them. */
const uint32_t *also_reached_by(uint32_t nr);
/* Likewise: calls of which a program may use one or another for the same purpose. */
const uint32_t *learned_with(uint32_t nr);

/* match.c */
bool glob(const char *pattern, const char *text);
const char *parse_address(const char *text, struct address *to); /* NULL, or what is wrong */
bool address_matches(const struct address *a, const struct sockaddr_storage *to, size_t length);

/* look.c: calls whose paths and addresses are copied, decided upon, and passed on as decided. */
int64_t on_path_call(const struct lind_call *c);
int64_t on_exec_call(const struct lind_call *c);
int64_t on_address_call(const struct lind_call *c);
int64_t on_spawned_path(const struct lind_call *c); /* by the rules of execve, if it has none */
int64_t on_sendmsg(const struct lind_call *c);
int64_t on_sendmmsg(const struct lind_call *c);

/* policy.c, json.c: reading policies. Each returns the rule for everything else. */
const struct rule *read_policy(const char *path);
const struct rule *read_json(const char *path, bool verbose);
const char *set_capabilities(const char *list);

/* lists.c: a policy by options. */
const char *add_call_list(const char *value);
const char *add_path_list(const char *value);
const char *add_program_list(const char *value);
bool has_lists(void);
const struct rule *read_lists(void);

/* refuse.c: carries out what a step says, and says so. `path` is where a path of the call leads,
 * if that is known. */
int64_t refuse(const struct lind_call *c, const struct step *s, const char *path);
void explain(const struct lind_call *c, const struct step *s, const char *path);
const char *set_lines(const char *value);

/* learn.c: in place of decisions. `known` is whether a policy can speak of it. */
int64_t on_learned_call(const struct lind_call *c);
int64_t on_learned_looking(const struct lind_call *c);
void learn_path(const struct lind_call *c, uint32_t as, unsigned effect, const struct lind_place *place, bool known);
void learn_address(const struct lind_call *c, uint32_t as, const struct sockaddr_storage *a, size_t length, bool known);
const char *set_learn(const char *path);
bool learning(void);
/* noted.c: the handler by which a call is noted for lists. */
lind_handle_fn *noting_handler(const struct lind_syscall *row);
int note_path(const struct lind_call *c, unsigned effect, const struct lind_place *place, void *arg);
void write_learned(void);

/* seccomp.c: the handler of a call about which a policy may want to know a path or an address. */
lind_handle_fn *looking(uint32_t nr);

/* starter.c: with --started, whether a cage is one that the policy is not about yet. */
extern bool only_started;
void follow_starters(void);
bool is_starter(uint64_t cage);

extern bool quiet, learn_names, learn_lists;

#endif
