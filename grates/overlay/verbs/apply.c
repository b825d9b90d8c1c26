/* apply and discard: what is checked before, and the order of it all. */
#include "failed.h"
#include "apply.h"
#include "report.h"
#include "../state/layers.h"
#include <errno.h>
#include <lind/options.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LEFT_OUT_SAID 4 /* attributes that are named */

/* Which of the changes of a file is the one that makes it: where it still has the name from
 * below, that; or the one that moves it. */
static void choose_first(struct verb_list *list)
{
	for (size_t i = 0; i < list->changes_count; i++) {
		struct verb_change *change = &list->changes[i];
		struct verb_node *node = change->node;
		struct verb_change *kept =
		    node && node->kept ? map_get(&list->paths, node->kept, strlen(node->kept)) : NULL;

		if (kept)
			node->first = kept;
		else if (node && (!node->first || change->kind == 'R') && (!node->kept || node->differs))
			node->first = change;
	}
}

static enum deed deed_of(const struct verb_change *change, const char **same)
{
	const struct verb_node *node = change->node;

	if (change->kind == 'R' && (!change->touched || change->type == S_IFDIR))
		return MOVES;
	if (change->kind == 'D' || change->type == S_IFDIR)
		return NOTHING;
	if (node->first == change)
		return MADE;
	*same = node->first ? node->first->path : node->kept;
	return LINKS;
}

void apply_index(struct apply *apply)
{
	for (size_t i = 0; i < apply->list->changes_count; i++) {
		struct verb_change *change = &apply->list->changes[i];
		enum deed deed = apply->work[i].deed;

		if (change->kind == 'D' && change->type == S_IFDIR)
			map_put(&apply->gone, change->from, change);
		if (deed == MOVES && change->type == S_IFDIR)
			map_put(&apply->moves, change->from, change);
		if (change->node && (deed == MADE || deed == MOVES || change->type == S_IFDIR))
			change->node->first = change;
	}
}

/* Finds the failures that can be known before anything is written. */
static int foreseen(const struct verb_change *change, enum deed deed)
{
	struct verb_xattr x = { 0 };
	int below, r;

	if (deed != MADE)
		return 0;
	if (!S_ISREG(change->type))
		return S_ISLNK(change->type) || S_ISFIFO(change->type) ? 0 : -EOPNOTSUPP;
	while (verb_next_xattr(&change->node->row, &x))
		if (x.size > XATTRS)
			return -E2BIG;
	r = below_of_row(&change->node->row, &below);
	if (below >= 0)
		close(below);
	return r;
}

static int plan(struct apply *apply)
{
	size_t count = apply->list->changes_count;

	if (!(apply->work = calloc(count + 1, sizeof *apply->work)))
		return -ENOMEM;
	choose_first(apply->list);
	for (size_t i = 0; i < count; i++) {
		apply->work[i].number = i;
		apply->work[i].deed = deed_of(&apply->list->changes[i], &apply->work[i].same);
	}
	apply_index(apply);
	for (size_t i = 0; i < apply->list->others_count; i++)
		apply_keep_above(apply, apply->list->others[i]);
	for (size_t i = 0; i < count; i++)
		apply->work[i].unfinished |= apply->list->changes[i].node && apply->list->changes[i].node->others &&
		    apply->list->changes[i].node->first == &apply->list->changes[i];
	for (size_t i = 0; i < count; i++) {
		int r = foreseen(&apply->list->changes[i], apply->work[i].deed);

		if (r)
			apply_fail(apply, i, r);
	}
	return 0;
}

/* Whether an error concerns the file alone; after any other error nothing is applied. */
static bool is_of_the_file(int error)
{
	static const int errors[] = { EACCES, EPERM, EFBIG, E2BIG, EINVAL, ENOENT, ENAMETOOLONG, EOPNOTSUPP, ERANGE,
		ELOOP, ENOTDIR, EILSEQ };

	for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
		if (errors[i] == -error)
			return true;
	return false;
}

/* Fails the changes that depend on a change that fails: a removal at the same path, and changes
 * to parts of it. */
static void fail_with_it(struct apply *apply)
{
	const struct verb_change *changes = apply->list->changes;

	for (size_t i = 1; i < apply->list->changes_count; i++)
		if (apply->work[i].failed && !apply->work[i - 1].failed && changes[i - 1].kind == 'D' &&
		    !strcmp(changes[i - 1].path, changes[i].path))
			apply_fail(apply, i - 1, -EBUSY);
	for (size_t i = 0; i < apply->list->changes_count; i++)
		if (apply->work[i].deed == LINKS && !apply->work[i].failed && changes[i].node->first &&
		    apply->work[changes[i].node->first - changes].failed)
			apply_fail(apply, i, -ENOENT);
	apply_keep_sources(apply);
}

/* Contents first, while all that shows through is where it was. */
static int make_files(struct apply *apply)
{
	for (size_t i = 0; i < apply->list->changes_count; i++) {
		const struct verb_change *change = &apply->list->changes[i];
		bool is_made = apply->work[i].deed == MADE && !apply->work[i].failed;
		int r = is_made ? apply_make(apply->store, &change->node->row, apply_new(apply, i)) : 0;

		if (r)
			apply_fail(apply, i, r);
		if (r && !is_of_the_file(r))
			return r;
	}
	fail_with_it(apply);
	/* One sync for all files: with one for each, ten thousand small files would take a minute. */
	return below_sync();
}

/* Nothing has been changed but at the top. */
static int give_up(struct apply *apply, int error)
{
	int r;

	journal_sweep(apply);
	r = journal_end(apply);
	lind_log("nothing was applied: %s", strerror(-error));
	return r ? verb_failed(apply->store, r) : 1;
}

static size_t done(const struct apply *apply)
{
	size_t count = 0;

	for (size_t i = 0; i < apply->list->changes_count; i++)
		count += !apply->work[i].failed;
	return count;
}

/* Says which attributes of what was applied have not come to the directory. */
static void say_left_out(const struct apply *apply)
{
	size_t more = 0;

	for (size_t i = 0, said = 0; i < apply->list->changes_count; i++) {
		const struct verb_change *change = &apply->list->changes[i];
		struct verb_xattr x = { 0 };

		/* Once for all names of a file. */
		if (apply->work[i].failed || !change->node || change->node->first != change)
			continue;
		while (verb_next_kept_xattr(&change->node->row, &x)) {
			if (said++ < LEFT_OUT_SAID)
				lind_log("%s: its attribute %s is left out, since it may mean something to the host",
				    change->path, x.name);
			else
				more++;
		}
	}
	if (more)
		lind_log("%zu more attributes are left out", more);
}

/* From `placing` on. */
static int carry_out(struct apply *apply, const struct verb_options *options)
{
	size_t count;
	bool whole;
	int r;

	apply_place(apply);
	apply->placed = true;
	count = done(apply);
	if (apply->stuck) {
		lind_log("this apply is not finished; the next one continues it");
		return 1;
	}
	say_left_out(apply);
	r = below_sync();
	r = r ? r : journal_clean(apply);
	r = r ? r : apply_leave(apply->store, apply->list, apply);
	r = r ? r : store_commit(apply->store, true);
	if (r)
		return verb_failed(apply->store, r);
	whole = journal_sweep(apply);
	if ((r = journal_end(apply)))
		return verb_failed(apply->store, r);
	apply->finished = true;
	lind_log("%zu %s applied to %s", count, count == 1 ? "change" : "changes",
	    options->called ? options->called : options->lower);
	return apply->failed || !whole ? 1 : 0;
}

static int apply_all(struct apply *apply, const struct verb_options *options)
{
	int r = journal_begin(apply);

	apply->finished = false;
	if (r)
		return verb_failed(apply->store, r);
	if ((r = make_files(apply)))
		return give_up(apply, r);
	if ((r = journal_plan(apply)))
		return verb_failed(apply->store, r);
	return carry_out(apply, options);
}

static void print_names(const struct verb_list *list, const struct verb_options *options)
{
	if (!options->json)
		verb_print_names(list, false);
}

/* An earlier apply that did not come to its end: comes to it now. An exit status. */
static int finish(struct apply *apply, const struct verb_options *options)
{
	struct store *store = apply->store;
	int r = below_begin(options->lower);

	if (r) {
		lind_log("%s: %s", options->lower, strerror(-r));
		return 125;
	}
	if (!(r = journal_read(apply))) {
		apply->finished = true;
		return 0;
	}
	if (r == -EXDEV) {
		lind_log("an apply to another directory is not finished; name that directory by --lower");
		return 1;
	}
	if (r < 0)
		return verb_failed(store, r);
	if (r == 2)
		lind_log("an apply was interrupted; %zu changes of it:", apply->list->changes_count);
	if (options->dry_run) {
		print_names(apply->list, options);
		return r == 2 ? 1 : 0;
	}
	if (r == 1) {
		journal_sweep(apply);
		r = journal_end(apply);
		apply->finished = !r;
		return r ? verb_failed(store, r) : 0;
	}
	apply_index(apply);
	return carry_out(apply, options);
}

/* Says what has been changed below since it was first changed here. */
static bool is_any_stale(struct verb_list *list, bool refuse)
{
	bool any = false;

	for (size_t i = 0; i < list->changes_count; i++) {
		if (!verb_is_stale(&list->changes[i]))
			continue;
		lind_log("%s: has been changed in the directory too", list->changes[i].path);
		if (refuse)
			list->changes[i].refused = "has been changed in the directory too";
		any = true;
	}
	return any;
}

/* Whether a directory, which is the first `length` bytes of a path, is below one that is renamed,
 * and comes to its place with that. */
static bool comes_along(const struct verb_list *list, const char *path, size_t length)
{
	const struct verb_change *change = NULL;
	char *rest, *from;
	struct stat st;
	size_t at = length;
	bool there;

	while (at && !change)
		if (path[--at] == '/')
			change = map_get(&list->paths, path, at);
	/* The nearest one says from where. */
	if (!change || change->kind != 'R' || !(rest = strndup(path + at + 1, length - at - 1)))
		return false;
	from = verb_joined(change->from, rest);
	there = below_look(from, &st) && S_ISDIR(st.st_mode);
	free(from);
	free(rest);
	return there;
}

/* Says what comes to a directory that is not there, nor comes with it. */
static bool is_any_without_directory(struct verb_list *list)
{
	bool any = false;

	for (size_t i = 0; i < list->changes_count; i++) {
		struct verb_change *change = &list->changes[i];
		const char *slash = change->kind == 'D' ? NULL : strrchr(change->path, '/'), *name;

		if (!slash || below_parent(change->path, &name) >= 0 ||
		    map_get(&list->paths, change->path, (size_t)(slash - change->path)) ||
		    comes_along(list, change->path, (size_t)(slash - change->path)))
			continue;
		change->refused = "its directory is new or renamed; apply the directory";
		lind_log("%s: %s", change->path, change->refused);
		any = true;
	}
	return any;
}

static int apply_meant(struct apply *apply, const struct verb_options *options)
{
	struct verb_options meant = *options;
	int status, r;

	/* A file of which some names are below already could not be told from one that somebody has
	 * made there. */
	meant.together = true;
	if ((status = verb_list(apply->store, &meant, apply->list)) || (status = is_any_without_directory(apply->list)))
		return status;
	if (is_any_stale(apply->list, !options->force) && !options->force) {
		lind_log("nothing was applied; --exclude PATH applies the rest and keeps PATH in the state, "
			 "--force replaces these files by those of the state, PATH alone applies only PATH");
		return 1;
	}
	if ((r = plan(apply)))
		return verb_failed(apply->store, r);
	if (!options->dry_run)
		return apply->list->changes_count ? apply_all(apply, options) : 0;
	fail_with_it(apply);
	print_names(apply->list, options);
	apply->placed = true;
	return apply->failed ? 1 : 0;
}

int verb_apply(struct store *store, const struct verb_options *options)
{
	static struct verb_list lists[2];
	const bool all = !options->words_count && !options->excludes_count;
	struct apply applies[] = { { .store = store, .list = &lists[0] },
		{ .store = store, .list = &lists[1], .all = all, .finished = true } };
	int status = finish(&applies[0], options);

	status = status ? status : apply_meant(&applies[1], options);
	if (options->json)
		report_apply(applies, 2, options->dry_run);
	return status;
}

int verb_discard(struct store *store, const struct verb_options *options)
{
	static struct verb_list list;
	int status = verb_list(store, options, &list), r;

	if (status)
		return status;
	r = options->words_count ? apply_leave(store, &list, NULL) : store_rollback(store, NULL);
	r = r ? r : store_commit(store, true);
	if (!r && options->json)
		report_discard(&list);
	return r ? verb_failed(store, r) : 0;
}
