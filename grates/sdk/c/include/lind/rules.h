/*
 * A grate's rules that the user changes while programs run: lind-boot session allow and deny. The
 * rules are options, as at the start, and all of them come each time.
 *
 *	static const struct lind_rules follows = { "net", options, COUNT(options), begin, settle };
 *
 *	lind_rules_follow(&follows);	in main, when the options are read
 *
 * A thread of the grate waits for them. It calls `begin`, then the `set` of each option, then
 * `settle(true)`, or `settle(false)` if one was wrong: so the grate collects them beside those that
 * apply, and puts them in their place at last. Programs cannot send rules: the kernel takes them
 * from the process that started the runner alone.
 */
#ifndef LIND_RULES_H
#define LIND_RULES_H

#include <lind/options.h>

#ifdef __cplusplus
extern "C" {
#endif

struct lind_rules {
	const char *name; /* that the user's side calls the grate by */
	const struct lind_option *options;
	size_t count;
	/* NULL, or why not. */
	const char *(*begin)(void);
	/* Whether they apply from now on. NULL, or why they cannot. */
	const char *(*settle)(bool applies);
};

/* The option that lind-boot gives to a grate whose rules can be changed. */
#define LIND_LIVE_OPTION { 0, "live", NULL, "take new rules from the user while programs run", lind_live_ }
const char *lind_live_(const char *value);

/* Whether the option was given. */
bool lind_is_live(void);

/* Without the option it does nothing. */
void lind_rules_follow(const struct lind_rules *rules);

/* Uses up a permission for one use: false if that was done before. */
bool lind_use_once(uint64_t number);

#ifdef __cplusplus
}
#endif
#endif
