/*
 * Commands on a state that no run uses: `overlay_grate --verb WORD --upper STATE ... -- ARGUMENTS`,
 * which lind-boot starts with the lower directory as root. The names of the verbs are those of
 * lind-boot's commands.
 */
#ifndef OVERLAY_VERB_H
#define OVERLAY_VERB_H

#include <stdbool.h>
#include <stdio.h>
#include "../state/store.h"

int verb_main(int argc, char **argv);

/* The options of the command. */
struct verb_options {
	const char *head;
	bool stat, patch, name_status, json, force, dry_run, overlayfs;
	bool together;  /* with one name of a file all of them are meant: of apply */
	const char *lower, *called; /* where the directory below is seen, and what the user calls it */
	const char *output, *to; /* of export: a tar file, a directory */
	struct verb_pattern *excludes; /* what is left out */
	size_t excludes_count;
	char **words;  /* the words behind the options */
	int words_count;
};

/* Each returns an exit status. */
int verb_snapshot(struct store *store, const struct verb_options *options);
int verb_rollback(struct store *store, const struct verb_options *options);
int verb_fork(struct store *store, const struct verb_options *options);
int verb_ls(struct store *store, const struct verb_options *options);
int verb_log(struct store *store, const struct verb_options *options);
int verb_lower(struct store *store, const struct verb_options *options);
int verb_diff(struct store *store, const struct verb_options *options);
int verb_apply(struct store *store, const struct verb_options *options);
int verb_discard(struct store *store, const struct verb_options *options);
int verb_export(struct store *store, const struct verb_options *options);

/* Adds a pattern; what is wrong with it, or NULL. */
const char *verb_exclude(struct verb_options *options, const char *value);
/* Whether a path, or a directory above it, matches one. */
bool verb_is_excluded(const struct verb_options *options, const char *path, bool directory);

#endif
