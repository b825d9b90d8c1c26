/* Clients change only files whose paths match a pattern, and nothing that is protected. */
#include <errno.h>
#include <limits.h>
#include <lind/guard.h>
#include <lind/rules.h>
#include <lind/syscall_table.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "names.h"
#include "rules.h"

static struct lind_guard guard;
/* Whether a rule is about reading. */
static bool conceals;

static bool is_harmless(const struct rules *rules, const char *name, size_t length)
{
	for (size_t i = 0; i < rules->harmless.count; i++)
		if (is_one_of(rules->harmless.of[i], strlen(rules->harmless.of[i]), name, length))
			return true;
	return false;
}

/* The name in a path that begins with a dot, below the innermost directory where that is not
 * allowed, and is not known to be harmless. Its length, 0: none. */
static size_t hidden_in(const struct rules *rules, const char *path, const char **name)
{
	const char *inside_of = NULL, *rest;

	for (size_t i = 0; i < rules->hidden.count; i++) {
		const char *here = below(path, rules->hidden.of[i]);

		inside_of = here && (!inside_of || here > inside_of) ? here : inside_of;
	}
	for (; inside_of; inside_of = rest) {
		size_t length = first(inside_of, name, &rest);
		const char *at = *name;

		if (!length)
			break;
		if (folded(&at, *name + length) == '.' && !is_harmless(rules, *name, length))
			return length;
	}
	return 0;
}

/* Whether a change would be one of this path: in it, or of a directory above it, which can neither
 * be put in another's place nor be taken away with all that is in it. */
static bool concerns(const char *pattern, const char *path, unsigned effect)
{
	enum relation found = relation(path, pattern);

	return found == BELOW || (found == ABOVE && effect & (LIND_DOES_CREATE | LIND_DOES_REMOVE | LIND_DOES_LINK));
}

static bool is_protected(const struct rules *rules, const char *path, unsigned effect)
{
	const char *name;

	for (size_t i = 0; i < rules->protected.count; i++)
		if (concerns(rules->protected.of[i], path, effect))
			return true;
	for (size_t i = 0; i < rules->below.count; i++)
		if (concerns(rules->below.of[i], path, effect & LIND_DOES_EMPTY ? 0 : effect))
			return true;
	return hidden_in(rules, path, &name);
}

static bool is_below(const char *path, const struct list *list)
{
	for (size_t i = 0; i < list->count; i++)
		if (relation(path, list->of[i]) == BELOW)
			return true;
	return false;
}

/* Whether a rule for one name in any directory, or for a pattern, grants a path. Large and small
 * letters differ here: what is granted is what was named. */
static bool grants(const char *pattern, const char *path)
{
	const char *any = strstr(pattern, "/**/"), *name, *rest, *end;
	size_t length;

	if (!any)
		return matches(path, pattern);
	if (strncmp(path, pattern, (size_t)(any - pattern)) || path[any - pattern] != '/')
		return false;
	end = any + strlen("/**/");
	for (const char *at = path + (any - pattern); (length = first(at, &name, &rest)); at = rest) {
		char below_it[LIND_PATH_MAX + 2];

		snprintf(below_it, sizeof below_it, "/%s", end);
		if (below(name - 1, below_it))
			return true;
	}
	return false;
}

/* The later rule that decides about a change, or about reading; NULL if there is none. */
static struct later *later_of(const struct rules *rules, const char *path, unsigned effect, bool reads)
{
	for (size_t i = 0; i < rules->later_count; i++) {
		struct later *l = &rules->later[i];

		if (reads != (l->what == REVEAL || l->what == CONCEAL) || __atomic_load_n(&l->used, __ATOMIC_ACQUIRE))
			continue;
		if (l->what == GRANT || l->what == REVEAL ? grants(l->pattern, path)
							  : concerns(l->pattern, path, effect))
			return l;
	}
	return NULL;
}

static bool may_by(const struct rules *rules, const char *path, unsigned effect)
{
	const struct later *l = later_of(rules, path, effect, false);

	if (l)
		return l->what == GRANT;
	if (is_protected(rules, path, effect) || (is_below(path, &rules->confined) && !is_below(path, &rules->inside)))
		return false;
	if (!rules->allowed.count)
		return true;
	for (size_t i = 0; i < rules->allowed.count; i++)
		if (matches(path, rules->allowed.of[i]))
			return true;
	return false;
}

static bool may_change(const char *path, unsigned effect)
{
	struct rules *rules = rules_hold();
	bool may = may_by(rules, path, effect);

	rules_release(rules);
	return may;
}

static bool may_read(const char *path)
{
	struct rules *rules = rules_hold();
	const struct later *l = later_of(rules, path, LIND_DOES_READ, true);
	bool may = !l || l->what == REVEAL;

	rules_release(rules);
	return may;
}

void rules_changed(bool reads)
{
	/* Readers are asked from the moment on at which the rules are there. */
	guard.may_read = reads ? may_read : NULL;
	__atomic_store_n(&conceals, reads, __ATOMIC_SEQ_CST);
}

/* Uses up the permission that a change goes by, if it is for one use. */
static bool take(const char *path, unsigned effect)
{
	struct rules *rules = rules_hold();
	struct later *l = later_of(rules, path, effect, false);
	bool took = !l || !l->once || lind_use_once(l->once);

	if (!took)
		__atomic_store_n(&l->used, true, __ATOMIC_RELEASE);
	took = took || may_by(rules, path, effect);
	rules_release(rules);
	return took;
}

/* A directory below --inside may hold files that would be confined elsewhere, so it is not moved
 * out. */
static bool may_move_all_in(const char *directory)
{
	struct rules *rules = rules_hold();
	bool may = !is_below(directory, &rules->inside);

	rules_release(rules);
	return may;
}

/* Finds the part of a path that is a name protected in any directory. Returns its length, 0:
 * none. */
static size_t protected_name(const struct rules *rules, const char *path, const char **found)
{
	const char *name, *rest;
	size_t length;

	for (size_t i = 0; i < rules->protected.count; i++) {
		const char *any = strstr(rules->protected.of[i], "/**/");

		if (!any || strchr(any + 4, '/') || relation(path, rules->protected.of[i]) != BELOW)
			continue;
		for (const char *at = path; (length = first(at, &name, &rest)); at = rest)
			if (same_name(name, length, any + 4, strlen(any + 4))) {
				*found = name;
				return length;
			}
	}
	return hidden_in(rules, path, found);
}

static const char *why_by(const struct rules *rules, const char *path, unsigned effect)
{
	static _Thread_local char reason[NAME_MAX + 64];
	const char *name;
	size_t length = protected_name(rules, path, &name);

	if (later_of(rules, path, effect, false))
		return "may not be changed since the user denied it";
	if (length && length <= NAME_MAX) {
		snprintf(reason, sizeof reason, "may not be changed, as any %.*s", (int)length, name);
		return reason;
	}
	if (!is_protected(rules, path, effect) && is_below(path, &rules->inside))
		return "may not be moved from there";
	return is_protected(rules, path, effect) || is_below(path, &rules->confined)
	    ? "may not be changed"
	    : "not among the paths that may be changed";
}

static const char *why(const char *path, unsigned effect)
{
	struct rules *rules = rules_hold();
	const char *reason = why_by(rules, path, effect);

	rules_release(rules);
	return reason;
}

static const char *answer(const char *value)
{
	static const struct {
		const char *name;
		int number;
	} known[] = { { "EACCES", EACCES }, { "EPERM", EPERM }, { "EROFS", EROFS } };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(value, known[i].name)) {
			guard.refusal = known[i].number;
			return NULL;
		}
	return "must be EACCES, EPERM or EROFS";
}

LIND_SETS(keep_given, guard.keeps_given = true)

/* Programs are looked at only where a rule is about reading. */
static int64_t on_run(const struct lind_call *call)
{
	return __atomic_load_n(&conceals, __ATOMIC_RELAXED) ? lind_guard_exec(call) : lind_pass(call);
}

LIND_GUARD_ALL_
LIND_HANDLE(alters, execve, on_run);
LIND_HANDLE(alters, execveat, on_run);
LIND_HANDLE(alters, spawn, on_run);
LIND_FILTER(lind_guard_path)
{
	return !__atomic_load_n(&conceals, __ATOMIC_RELAXED) && lind_guard_changes_nothing(nr, a1, a2) ? LIND_PASS
												       : LIND_ASK;
}

/* Where no rule is about reading, and none can come, running a program costs no hop. */
static void without_reading(void)
{
	if (lind_is_live() || conceals)
		return;
	lind_grate_without(SYS_execve);
	lind_grate_without(SYS_execveat);
	lind_grate_without(SYS_spawn);
}

LIND_OPTION("a", "allow", "value");
LIND_OPTION("e", "errno", "value");

static const struct lind_option options[] = {
	{ 'a', "allow", "PATTERN",
	    "allow changes to these paths: *, ? and [...] as in a shell, /** for everything below", rules_allow },
	{ 'p', "protect", "PATH",
	    "forbid changes to PATH and below, even if --allow matches: ** for any directories, * and ? in names; without --allow, all other paths may be changed",
	    rules_protect },
	{ 0, "protect-below", "PATH",
	    "as --protect, but the directories above PATH can be made, and removed when empty", rules_protect_below },
	{ 0, "confine", "PATH", "forbid changes to PATH and below, except below the paths of --inside", rules_confine },
	{ 0, "inside", "PATH", "allow changes to confined paths below PATH; directories cannot be moved out of it",
	    rules_inside },
	{ 0, "hidden", "PATH", "forbid changes below PATH to each name that begins with a dot", rules_hide },
	{ 0, "harmless", "NAMES", "except these names from --hidden: patterns with * and ?, separated by slashes",
	    rules_let_be },
	{ 0, "given", NULL, "keep the open files of the caller writable, whatever their paths are", keep_given },
	{ 'e', "errno", "NAME", "return this error for other changes: EACCES (default), EPERM, EROFS", answer },
	{ 0, "grant", "[once:N:]PATTERN",
	    "allow changes to these paths whatever other rules say; of these four the first that matches decides",
	    rules_grant },
	{ 0, "refuse", "PATH", "forbid changes to PATH and below, whatever other rules say", rules_refuse },
	{ 0, "reveal", "PATTERN", "allow reading these paths, though --conceal matches", rules_reveal },
	{ 0, "conceal", "PATH", "forbid reading PATH and below", rules_conceal },
	LIND_LIVE_OPTION,
};

static const struct lind_rules living = {
	.name = "write_filter",
	.options = options,
	.count = sizeof options / sizeof *options,
	.begin = rules_begin,
	.settle = rules_settle,
};

int main(int argc, char **argv)
{
	guard = (struct lind_guard){
		.may_change = may_change,
		.may_move_all_in = may_move_all_in,
		.take = take,
		.refusal = EACCES,
		.why = why,
	};
	lind_options(options, sizeof options / sizeof *options, "Lets clients change only files whose paths match.",
	    &argc, &argv);
	rules_settle(true);
	lind_guard_begin(&guard);
	without_reading();
	lind_rules_follow(&living);
	return lind_grate_main(argc, argv);
}
