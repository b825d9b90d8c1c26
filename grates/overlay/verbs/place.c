/* Makes what is planned, step by step: verb_apply.h. */
#include "apply.h"
#include <errno.h>
#include <fcntl.h>
#include <lind/options.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

const char *apply_new(const struct apply *apply, size_t i)
{
	static char name[64];

	snprintf(name, sizeof name, APPLY_TEMPORARY "%s-%zu", apply->random, apply->work[i].number);
	return name;
}

const char *apply_aside(const struct apply *apply, size_t i)
{
	static char name[64];

	snprintf(name, sizeof name, APPLY_TEMPORARY "%s-%zu-old", apply->random, apply->work[i].number);
	return name;
}

void apply_fail(struct apply *apply, size_t i, int error)
{
	const char *why = error == -ESTALE ? "has been changed in the directory too"
	    : error == -EOPNOTSUPP         ? "devices and sockets are not applied"
					   : strerror(-error);

	lind_log("%s: %s", apply->list->changes[i].path, why);
	apply->list->changes[i].refused = why;
	apply->work[i].failed = true;
	apply->failed++;
	if (error == -ESTALE && apply->list->changes[i].node)
		apply->list->changes[i].node->stale = true;
}

/* The directory that is at the longest part of a path, of those that a change does this to. */
static struct verb_change *above(const struct apply *apply, const char *path, char kind, size_t *length)
{
	for (size_t size = strlen(path); size--;) {
		struct verb_change *change;

		if (path[size] != '/' || !(change = map_get(kind == 'R' ? &apply->moves : &apply->gone, path, size)))
			continue;
		if (apply->work[change - apply->list->changes].failed)
			continue;
		*length = size;
		return change;
	}
	return NULL;
}

char *apply_moved(const struct apply *apply, const char *path)
{
	size_t length;
	const struct verb_change *change = above(apply, path, 'R', &length);

	return change ? verb_joined(change->path, path + length + 1) : NULL;
}

/* Gives what is at one path another. One of the two is at the top. */
static int move(const char *from, const char *to, bool replaces)
{
	const char *from_name, *to_name;
	int from_at = below_parent(from, &from_name), to_at = from_at < 0 ? -1 : below_parent(to, &to_name);
	struct stat st;

	if (to_at < 0)
		return -errno;
	if (!replaces && !syscall(SYS_renameat2, from_at, from_name, to_at, to_name, RENAME_NOREPLACE))
		return 0;
	/* There are file systems that do not know of that. */
	if (!replaces && (errno != EINVAL || !fstatat(to_at, to_name, &st, AT_SYMLINK_NOFOLLOW)))
		return errno == EEXIST ? -ESTALE : -errno;
	return renameat(from_at, from_name, to_at, to_name) ? -errno : 0;
}

static int take_removed(const struct verb_change *change, const char *aside)
{
	const char *name;
	int at = below_parent(change->from, &name), r;

	if (at < 0)
		return -errno;
	if (change->type != S_IFDIR)
		return unlinkat(at, name, 0) ? -errno : 0;
	/* A directory that may not be written to cannot be moved. */
	r = move(change->from, aside, false);
	return r == -EACCES ? apply_remove(change->from) : r;
}

/* Takes away what moves or goes. */
static int take(const struct apply *apply, size_t i)
{
	const struct verb_change *change = &apply->list->changes[i];
	struct verb_seen was = change->was;
	struct stat st;
	int r;

	if (apply->again && below_look(apply_aside(apply, i), &st))
		return 0;
	/* It may have been there and back. */
	if (apply->again && change->kind == 'R')
		was.ctime = 0;
	if (!below_look(change->from, &st))
		return apply->again || change->kind == 'D' ? 0 : -ESTALE;
	if (!verb_is_seen(&was, &st))
		return apply->again ? 0 : -ESTALE;
	r = change->kind == 'D' ? take_removed(change, apply_aside(apply, i))
				: move(change->from, apply_aside(apply, i), false);
	if (S_ISDIR(st.st_mode))
		below_forget();
	return r;
}

static int by_from(const void *a, const void *b)
{
	const struct verb_change *const *one = a, *const *other = b;

	return strcmp((*one)->from, (*other)->from);
}

/* Of the changes of these kinds, those that have failed or not, by where they were. */
static struct verb_change **sources(const struct apply *apply, const char *kinds, bool failed, size_t *count)
{
	struct verb_change **found = calloc(apply->list->changes_count + 1, sizeof *found);

	if (!found)
		lind_die("no memory");
	*count = 0;
	for (size_t i = 0; i < apply->list->changes_count; i++)
		if (strchr(kinds, apply->list->changes[i].kind) && apply->work[i].failed == failed)
			found[(*count)++] = &apply->list->changes[i];
	if (*count)
		qsort(found, *count, sizeof *found, by_from);
	return found;
}

/* The deepest first, so that a directory goes with nothing in it that has a way of its own. */
static void take_away(struct apply *apply)
{
	size_t count;
	struct verb_change **going = sources(apply, "DR", false, &count);

	while (count--) {
		size_t i = (size_t)(going[count] - apply->list->changes);
		int r = take(apply, i);

		if (r)
			apply_fail(apply, i, r);
	}
	free(going);
}

/* Moves the temporary file to the path of the change, unless the file there is another than when
 * the change was planned. */
static int put(const struct verb_change *change, const char *temporary)
{
	const char *name;
	struct stat st;
	int r;

	if (!below_look(change->path, &st))
		return move(temporary, change->path, false);
	if (!change->over.ino || !verb_is_seen(&change->over, &st))
		return -ESTALE;
	r = move(temporary, change->path, true);
	/* If both are names of one file, a rename does nothing. */
	if (!r)
		unlinkat(below_parent(temporary, &name), temporary, 0);
	return r;
}

static int make_directory(const char *path)
{
	const char *name;
	int at = below_parent(path, &name);
	struct stat st;

	if (at < 0)
		return -errno;
	if (!mkdirat(at, name, 0700))
		return 0;
	return errno == EEXIST && !fstatat(at, name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode) ? 0
	    : errno == EEXIST                                                                         ? -ESTALE
												      : -errno;
}

static int put_in_place(const struct apply *apply, size_t i)
{
	const struct verb_change *change = &apply->list->changes[i];
	enum deed deed = apply->work[i].deed;
	const char *temporary = deed == MOVES ? apply_aside(apply, i) : apply_new(apply, i);
	struct stat st;
	int r;

	if (deed != MADE && deed != MOVES)
		return change->kind == 'A' && change->type == S_IFDIR ? make_directory(change->path) : 0;
	if (apply->again && !below_look(temporary, &st)) {
		if (deed == MOVES && (!below_look(change->path, &st) || st.st_ino != change->was.ino))
			return -ESTALE;
		return 0;
	}
	r = put(change, temporary);
	if (change->type == S_IFDIR)
		below_forget();
	return r;
}

/* By way of the top, so that it takes the place of what is there in one step. */
static int put_link(const struct apply *apply, size_t i)
{
	const struct verb_change *change = &apply->list->changes[i], *first = change->node->first;
	const char *same = apply->work[i].same, *name, *temporary = apply_new(apply, i);
	struct stat st, file;
	int at, r;

	if (first && apply->work[first - apply->list->changes].failed)
		return -ENOENT;
	if (!below_look(same, &file))
		return -errno;
	if (below_look(change->path, &st) && st.st_ino == file.st_ino && st.st_dev == file.st_dev)
		return 0;
	at = below_parent(same, &name);
	if (at < 0 || (linkat(at, name, below_parent(temporary, &temporary), temporary, 0) && errno != EEXIST))
		return -errno;
	/* A name less is a change of the file: it is to be before the state notes how that is. */
	if ((r = put(change, temporary)))
		unlinkat(below_parent(temporary, &temporary), temporary, 0);
	return r;
}

void apply_keep_sources(struct apply *apply)
{
	for (size_t i = 0; i < apply->list->changes_count; i++) {
		const struct verb_node *node = apply->list->changes[i].node;
		struct verb_change *gone;
		size_t length;

		if (!apply->work[i].failed || !node || !node->row.origin)
			continue;
		while ((gone = above(apply, node->row.origin, 'D', &length))) {
			size_t j = (size_t)(gone - apply->list->changes);
			char *moved = apply_moved(apply, gone->from);

			/* If it has been set aside already. */
			move(apply_aside(apply, j), moved ? moved : gone->from, false);
			below_forget();
			free(moved);
			apply_fail(apply, j, -ENOTEMPTY);
		}
	}
}

/* Puts files back that were set aside and have no place now. */
static void give_back(struct apply *apply)
{
	size_t count;
	struct verb_change **failed;
	struct stat st;

	apply_keep_sources(apply);
	failed = sources(apply, "R", true, &count);
	for (size_t i = 0; i < count; i++) {
		const char *aside = apply_aside(apply, (size_t)(failed[i] - apply->list->changes));
		char *moved = apply_moved(apply, failed[i]->from);
		int r = below_look(aside, &st) ? move(aside, moved ? moved : failed[i]->from, false) : 0;

		if (r) {
			lind_log("%s: is at %s: %s", failed[i]->from, aside, strerror(-r));
			apply->stuck = true;
		}
		below_forget();
		free(moved);
	}
	free(failed);
}

void apply_keep_above(const struct apply *apply, uint64_t dir)
{
	const struct verb_list *list = apply->list;

	for (const struct verb_node *node = verb_node(list, dir); node;
	    node = node->entry ? verb_node(list, node->entry->dir) : NULL)
		if (node->first && S_ISDIR(node->row.mode))
			apply->work[node->first - list->changes].unfinished = true;
}

static void set_attributes(struct apply *apply)
{
	for (size_t i = apply->list->changes_count; i--;) {
		const struct verb_change *change = &apply->list->changes[i];
		int r = change->kind != 'D' && change->type == S_IFDIR && !apply->work[i].failed
		    ? apply_attributes(change->path, &change->node->row)
		    : 0;

		if (!r)
			continue;
		apply_fail(apply, i, r);
		apply->work[i].failed = false;
		apply->work[i].unfinished = true;
	}
}

/* A change that stays in the state keeps the directories above it there, and the file that it is
 * a name of. */
static void keep_others(const struct apply *apply)
{
	const struct verb_list *list = apply->list;

	for (size_t i = 0; i < list->changes_count; i++) {
		const struct verb_node *node = list->changes[i].node;

		if (apply->work[i].failed && node && node->first)
			apply->work[node->first - list->changes].unfinished = true;
	}

	for (size_t i = 0; i < list->changes_count; i++) {
		const struct verb_change *change = &list->changes[i];
		const struct verb_entry *left = change->kind == 'R' && apply->work[i].failed
		    ? map_get(&list->left, change->from, strlen(change->from))
		    : NULL;

		if (apply->work[i].failed || apply->work[i].unfinished)
			apply_keep_above(apply, change->dir);
		if (left)
			apply_keep_above(apply, left->dir);
	}
}

void apply_place(struct apply *apply)
{
	size_t count = apply->list->changes_count;
	int r;

	take_away(apply);
	/* The highest first; further names of what is there come later. */
	for (int links = 0; links < 2; links++)
		for (size_t i = 0; i < count; i++)
			if (!apply->work[i].failed && (apply->work[i].deed == LINKS) == links &&
			    (r = links ? put_link(apply, i) : put_in_place(apply, i)))
				apply_fail(apply, i, r);
	give_back(apply);
	set_attributes(apply);
	keep_others(apply);
}
