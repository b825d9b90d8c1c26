/* The verbs' command line. */
#include "verb.h"
#include "failed.h"
#include "../state/state_files.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lind/options.h>
#include <stdlib.h>
#include <string.h>

static const struct verb {
	const char *name;
	int (*act)(struct store *store, const struct verb_options *options);
	int least, most; /* how many words it takes */
	bool whole;  /* not while an apply is not at its end */
} verbs[] = {
	{ "snapshot", verb_snapshot, 1, 1, true },
	{ "rollback", verb_rollback, 1, 1, true },
	{ "fork", verb_fork, 1, 1, true },
	{ "ls", verb_ls, 0, 0, false },
	{ "log", verb_log, 0, 0, false },
	{ "lower", verb_lower, 0, 0, false },
	{ "diff", verb_diff, 0, INT_MAX, true },
	{ "apply", verb_apply, 0, INT_MAX, false },
	{ "discard", verb_discard, 0, INT_MAX, true },
	{ "export", verb_export, 0, 0, true },
};

static const struct verb *verb_named(const char *name)
{
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (!strcmp(verbs[i].name, name))
			return &verbs[i];
	lind_die("no verb '%s'", name);
}

static struct verb_options options;
static const char *upper, *verb_name;

LIND_KEEPS(set_verb, verb_name)
LIND_KEEPS(set_upper, upper)
LIND_KEEPS(set_head, options.head)
LIND_KEEPS(set_lower, options.lower)
LIND_KEEPS(set_called, options.called)
LIND_KEEPS(set_to, options.to)
LIND_KEEPS(set_output, options.output)
static const char *add_exclude(const char *value)
{
	return verb_exclude(&options, value);
}
LIND_SETS(set_stat, options.stat = true)
LIND_SETS(set_patch, options.patch = true)
LIND_SETS(set_name_status, options.name_status = true)
LIND_SETS(set_json, options.json = true)
LIND_SETS(set_force, options.force = true)
LIND_SETS(set_dry_run, options.dry_run = true)
LIND_SETS(set_overlayfs, options.overlayfs = true)

LIND_OPTION("-", "verb", "value");
LIND_OPTION("-", "output", "writes");
LIND_OPTION("-", "to", "value");
LIND_OPTION("-", "exclude", "value");

static struct store *open_state(void)
{
	struct state_files files;
	struct store *store;
	int r = state_files_open(upper, false, &files);

	if (r)
		lind_die("%s: %s", lind_file_name(upper), strerror(-r));
	if (store_open(&store, files.db, files.wal, files.data, NULL, options.head)) {
		lind_log("%s: %s", lind_file_name(upper), store_problem(store));
		store_close(store);
		exit(STRANGE);
	}
	return store;
}

int verb_main(int argc, char **argv)
{
	static const struct lind_option list[] = {
		{ 0, "verb", "WORD", "run this command", set_verb },
		{ 0, "upper", "STATE", "use this state", set_upper },
		{ 0, "head", "NAME", "use this head of the state (default: main)", set_head },
		{ 0, "lower", "DIR", "find the lower directory at DIR", set_lower },
		{ 0, "called", "DIR", "call the lower directory DIR in messages", set_called },
		{ 0, "output", "FILE", "export: write a tar file (default: to standard output)", set_output },
		{ 0, "to", "DIR", "export: write to a directory", set_to },
		{ 0, "exclude", "PATTERN", "diff, apply, log: leave out what matches", add_exclude },
		{ 0, "stat", NULL, "diff: print how much of each file has changed", set_stat },
		{ 0, "patch", NULL, "diff: print a patch", set_patch },
		{ 0, "name-status", NULL, "diff: print kinds and names", set_name_status },
		{ 0, "json", NULL, "diff, apply, discard, snapshot, rollback: print JSON", set_json },
		{ 0, "force", NULL, "apply: replace files that have changed in the directory since, too", set_force },
		{ 0, "dry-run", NULL, "apply: print the changes without making them", set_dry_run },
		{ 0, "overlayfs", NULL, "export: write the changes alone, in the format of overlayfs", set_overlayfs },
	};
	const struct verb *verb;
	struct store *store;
	int status, r;

	/* The last word stands for the program that a grate would start. */
	lind_options(
	    list, sizeof list / sizeof *list, "Looks at the state of an overlay, or changes it.", &argc, &argv);
	if (!verb_name || !upper)
		lind_die("give it --verb and --upper");
	verb = verb_named(verb_name);
	options.words = argv + 1;
	options.words_count = argc - 2;
	if (options.words_count < verb->least || options.words_count > verb->most)
		lind_die("%s takes %s", verb->name, verb->most ? "one name" : "no names");
	store = open_state();
	if (verb->whole && store_is_applying(store)) {
		lind_log("an apply was interrupted; lind-boot apply finishes it");
		store_close(store);
		return STRANGE;
	}
	status = verb->act(store, &options);
	if ((r = store_close(store)) && !status) {
		lind_log("cannot write the state: %s", strerror(-r));
		status = STRANGE;
	}
	return status;
}
