/*
 * The list of changes. Each row of a name says what there is under it; what would be there without
 * the row is the same name in the directory that its directory was (the origin). From the two come
 * the kinds.
 */
#include "failed.h"
#include "tree.h"
#include "git.h"
#include "../state/state.h"
#include <errno.h>
#include <lind/options.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <limits.h>
#include <sys/xattr.h>

/* A word as paths are kept: without what means nothing. */
static size_t trimmed(const char **word)
{
	size_t length;

	while (!strncmp(*word, "./", 2))
		*word += 2;
	length = strlen(*word);
	while (length && (*word)[length - 1] == '/')
		length--;
	return length == 1 && **word == '.' ? 0 : length;
}

static bool is_at_or_below(const char *path, const char *word)
{
	size_t length = trimmed(&word);

	return path && (!length || (!strncmp(path, word, length) && (!path[length] || path[length] == '/')));
}

static bool is_of_word(const struct verb_change *change, const char *word)
{
	return is_at_or_below(change->path, word) || is_at_or_below(change->from, word) ||
	    is_at_or_below(change->seen, word);
}

/* A renamed file is shown if one of its names is not excluded, and applied if neither is. */
static bool is_excluded(const struct verb_options *options, const struct verb_change *change)
{
	bool directory = change->type == S_IFDIR, here = verb_is_excluded(options, change->path, directory);

	if (change->kind != 'R' || here == options->together)
		return here;
	return verb_is_excluded(options, change->from, directory);
}

static bool is_meant(const struct verb_options *options, const struct verb_change *change)
{
	if (is_excluded(options, change))
		return false;
	for (int i = 0; i < options->words_count; i++)
		if (is_of_word(change, options->words[i]))
			return true;
	return !options->words_count;
}

static void add_other(struct verb_list *list, uint64_t dir)
{
	if (!(list->others_count & (list->others_count - 1))) {
		uint64_t *more =
		    realloc(list->others, (list->others_count ? 2 * list->others_count : 1) * sizeof *more);

		if (!more)
			lind_die("no memory");
		list->others = more;
	}
	list->others[list->others_count++] = dir;
}

static void add(struct verb_list *list, struct verb_change change)
{
	if (!(list->changes_count & (list->changes_count - 1))) {
		struct verb_change *more =
		    realloc(list->changes, (list->changes_count ? 2 * list->changes_count : 1) * sizeof *more);

		if (!more)
			lind_die("no memory");
		list->changes = more;
	}
	list->changes[list->changes_count++] = change;
}

static void leave_out(struct verb_list *list, struct verb_change *change)
{
	const struct verb_entry *left =
	    change->kind == 'R' ? map_get(&list->left, change->from, strlen(change->from)) : NULL;

	add_other(list, change->dir);
	if (change->node)
		change->node->others = true;
	if (left)
		add_other(list, left->dir);
	free(change->path);
}

/* Only what was asked for stays in the list. `together`: and all names of a file of which one
 * was. */
static void choose(struct verb_list *list, const struct verb_options *options)
{
	size_t kept = 0;

	for (size_t i = 0; i < list->changes_count; i++) {
		struct verb_node *node = list->changes[i].node;

		if (!node || S_ISDIR(node->row.mode) || !options->together)
			continue;
		node->meant |= is_meant(options, &list->changes[i]);
		node->excluded |= is_excluded(options, &list->changes[i]);
	}
	for (size_t i = 0; i < list->changes_count && options->together; i++)
		if (is_meant(options, &list->changes[i]))
			verb_mean_merges(list, &list->changes[i]);
	for (size_t i = 0; i < list->changes_count; i++) {
		struct verb_change *change = &list->changes[i];

		if (!(change->node && change->node->excluded) &&
		    ((change->node && change->node->meant) || is_meant(options, change)))
			list->changes[kept++] = *change;
		else
			leave_out(list, change);
	}
	list->changes_count = kept;
}

/* Whether there is something under this name, changed or not: in the directory, or where a
 * directory above it has been moved to. */
static bool exists(const struct verb_list *list, const char *word)
{
	size_t length = trimmed(&word);
	char *path = strndup(word, length), *from = NULL;
	struct stat st;
	bool there;

	if (!path)
		lind_die("no memory");
	there = !length || below_look(path, &st);
	for (size_t i = 0; !there && i < list->entries_count; i++) {
		const struct verb_entry *entry = &list->entries[i];
		const struct verb_node *node =
		    entry->path && is_at_or_below(path, entry->path) ? verb_node(list, entry->ino) : NULL;
		size_t above = node ? strlen(entry->path) : 0;

		if (!node || !node->row.origin)
			continue;
		from = path[above] ? verb_joined(node->row.origin, path + above + 1) : strdup(node->row.origin);
		there = from && below_look(from, &st);
		free(from);
	}
	free(path);
	return there;
}

/* A word that matches nothing is a mistake, as with git. */
static int check_words(const struct verb_list *list, const struct verb_options *options)
{
	int status = 0;

	for (int i = 0; i < options->words_count; i++) {
		bool found = false;

		for (size_t j = 0; j < list->changes_count && !found; j++)
			found = is_of_word(&list->changes[j], options->words[i]);
		if (found || exists(list, options->words[i]))
			continue;
		lind_log("%s: no such change in the state", options->words[i]);
		status = 1;
	}
	return status;
}

static bool next_xattr(const struct store_node *row, struct verb_xattr *x)
{
	const char *end = (const char *)row->xattrs + row->xattrs_size,
		   *at = x->name ? x->value + x->size : row->xattrs, *after;

	if (at >= end || !(after = memchr(at, 0, (size_t)(end - at))) || (size_t)(end - ++after) < sizeof x->size)
		return false;
	x->name = at;
	memcpy(&x->size, after, sizeof x->size);
	x->value = after + sizeof x->size;
	return x->size <= (size_t)(end - x->value);
}

static bool next_xattr_of(const struct store_node *row, struct verb_xattr *x, bool users)
{
	while (next_xattr(row, x))
		if (users == !strncmp(x->name, "user.", 5))
			return true;
	return false;
}

/* Attributes for administrators and security modules have a meaning to the host, so they stay in
 * the overlay. */
bool verb_next_xattr(const struct store_node *row, struct verb_xattr *x)
{
	return next_xattr_of(row, x, true);
}

bool verb_next_kept_xattr(const struct store_node *row, struct verb_xattr *x)
{
	return next_xattr_of(row, x, false);
}

/* Attributes of users are kept. `fd` is of the file below. */
static bool same_xattrs(int fd, const struct store_node *row)
{
	static char names[XATTRS], value[XATTRS];
	ssize_t size = flistxattr(fd, names, sizeof names);
	struct verb_xattr x = { 0 };
	int count = 0;

	for (ssize_t i = 0; i < size; i += (ssize_t)strlen(names + i) + 1)
		count += !strncmp(names + i, "user.", 5);
	for (; verb_next_xattr(row, &x); count--)
		if (fgetxattr(fd, x.name, value, sizeof value) != (ssize_t)x.size || memcmp(value, x.value, x.size))
			return false;
	return !count;
}

/* Whether the regular file `path` has other bytes or attributes. */
static int bytes_differ(struct store *store, const struct store_node *node, const char *path)
{
	static uint8_t ours[STORE_CHUNK], theirs[STORE_CHUNK];
	int fd = below_open(path), below = node->origin ? below_open(node->origin) : -1, r = fd < 0;

	for (uint64_t chunk = 0; !r && (int64_t)(chunk * STORE_CHUNK) < node->size; chunk++) {
		ssize_t have = verb_chunk(store, node, below, chunk, ours),
			n = pread(fd, theirs, STORE_CHUNK, (off_t)(chunk * STORE_CHUNK));

		r = have < 0 ? (int)have : n < have || memcmp(ours, theirs, (size_t)have);
	}
	r = r ? r : !same_xattrs(fd, node);
	if (below >= 0)
		close(below);
	if (fd >= 0)
		close(fd);
	return r;
}

static bool directory_differs(const struct store_node *node, const char *path)
{
	int fd = *path ? below_directory(path) : -1;
	bool differs = fd >= 0 && !same_xattrs(fd, node);

	if (fd >= 0)
		close(fd);
	return differs;
}

/* Whether a file differs from the one at `path` below by more than times. */
static int differs(struct store *store, const struct store_node *node, const char *path)
{
	char target[PATH_MAX];
	struct stat st;

	if (!below_look(path, &st) || st.st_mode != node->mode || st.st_uid != node->uid || st.st_gid != node->gid)
		return 1;
	if (S_ISLNK(node->mode)) {
		ssize_t n = below_link(path, target, sizeof target);

		return n < 0 || !node->target || strlen(node->target) != (size_t)n ||
		    memcmp(node->target, target, (size_t)n);
	}
	if (S_ISDIR(node->mode))
		return directory_differs(node, path);
	if (!S_ISREG(node->mode))
		return 0;
	return st.st_size != node->size ? 1 : bytes_differ(store, node, path);
}

static bool looks_stale(const struct verb_change *change)
{
	const struct store_stamp *stamp = change->node ? &change->node->row.stamp : NULL;
	struct stat st;

	if (change->late)
		return true;
	if (!change->node || !change->node->row.origin || S_ISDIR(change->node->row.mode))
		return false;
	return !below_look(change->node->row.origin, &st) || st.st_ino != stamp->ino || st.st_size != stamp->size ||
	    st.st_mtim.tv_sec != stamp->mtime.tv_sec || st.st_mtim.tv_nsec != stamp->mtime.tv_nsec ||
	    st.st_ctim.tv_sec != stamp->ctime.tv_sec || st.st_ctim.tv_nsec != stamp->ctime.tv_nsec;
}

bool verb_is_stale(const struct verb_change *change)
{
	return looks_stale(change) && !git_only_looked(change);
}

struct verb_seen verb_seen(const struct stat *st)
{
	return (struct verb_seen){ st->st_ino, st->st_mode & S_IFMT, st->st_size, in_nanoseconds(st->st_mtim),
		st->st_nlink > 1 ? 0 : in_nanoseconds(st->st_ctim) };
}

bool verb_is_seen(const struct verb_seen *seen, const struct stat *st)
{
	if (st->st_ino != seen->ino || (st->st_mode & S_IFMT) != seen->type)
		return false;
	return S_ISDIR(st->st_mode) ||
	    (st->st_size == seen->size && in_nanoseconds(st->st_mtim) == seen->mtime &&
		(!seen->ctime || in_nanoseconds(st->st_ctim) == seen->ctime));
}

/* A file below that is not seen any more: nothing or something else is at its name. A file that was
 * moved is not gone. */
static void add_gone(
    struct verb_list *list, const struct verb_entry *entry, const char *there, const struct stat *st, bool late)
{
	if (!map_get(&list->moved, there, strlen(there)))
		add(list,
		    (struct verb_change){ .kind = 'D',
			.path = strdup(there),
			.from = strdup(there),
			.dir = entry->dir,
			.name = entry->name,
			.seen = entry->path,
			.type = st->st_mode & S_IFMT,
			.late = late,
			.was = verb_seen(st) });
}

/* Whether a new file took the place of one like it, as where something is written to another
 * name and moved there. */
static bool is_made_again(
    struct store *store, const struct verb_list *list, const struct verb_node *node, const char *there)
{
	const struct store_node *row = &node->row;

	return !row->origin && row->nlink == 1 && (S_ISREG(row->mode) || S_ISLNK(row->mode)) &&
	    !map_get(&list->moved, there, strlen(there)) && !differs(store, row, there);
}

static void add_found(struct store *store, struct verb_list *list, struct verb_entry *entry, struct verb_node *node)
{
	bool unseen;
	char *there = verb_hidden(list, entry, &unseen);
	const struct store_node *row = &node->row;
	bool own = there && row->origin && !strcmp(there, row->origin);
	struct verb_change change = { .path = strdup(entry->path),
		.node = node,
		.dir = entry->dir,
		.name = entry->name,
		.seen = entry->path,
		.type = row->mode & S_IFMT };
	struct stat st, origin;
	bool is_there = there && below_look(there, &st), hides = is_there && !own,
	     is_one = hides && (S_ISDIR(st.st_mode) || S_ISDIR(row->mode));

	/* A file that took the place of another has no record of it, but is older than any later change
	 * to that one. */
	change.late = hides && (unseen || (!row->origin && verb_is_later(&st.st_ctim, &row->btime)));
	if (node->merges)
		change.late = differs(store, row, there) != 0;
	change.touched = node->differs;
	change.from = row->origin ? strdup(row->origin) : NULL;
	if (is_there && !is_one && !S_ISDIR(row->mode))
		change.over = verb_seen(&st);
	/* A directory in the place of something, or something in the place of a directory. */
	if (is_one && !node->merges)
		add_gone(list, entry, there, &st, change.late);
	if (own) {
		change.kind = 'M';
		if (node->differs)
			add(list, change);
	} else if (row->origin && map_get(&list->moved, row->origin, strlen(row->origin)) == node && !node->moved) {
		change.kind = 'R';
		if (below_look(row->origin, &origin))
			change.was = verb_seen(&origin);
		/* Other names of it are made. */
		node->moved = true;
		add(list, change);
	} else if (hides && is_made_again(store, list, node, there)) {
		/* Nothing has changed but times. */
	} else if (!hides || node->differs || !node->kept || !below_look(row->origin, &origin) ||
	    origin.st_ino != st.st_ino || origin.st_dev != st.st_dev) {
		change.kind = hides && !is_one ? 'M' : 'A';
		/* Making a name of the file was a change of it, and so was applying another one. */
		if (row->origin && hides && !S_ISDIR(row->mode))
			change.late = unseen || verb_is_later(&st.st_ctim, &row->ctime);
		if (!row->origin && change.kind == 'M')
			change.from = strdup(there);
		add(list, change);
	}
	free(there);
}

static int by_path(const void *a, const void *b)
{
	const struct verb_change *one = a, *other = b;
	int order = strcmp(one->path, other->path);

	/* Removals precede other changes. */
	return order ? order : (other->kind == 'D') - (one->kind == 'D');
}

static void add_removed(struct verb_list *list)
{
	for (size_t i = 0; i < list->entries_count; i++) {
		struct verb_entry *entry = &list->entries[i];
		char *there = entry->path && !entry->ino ? verb_natural(list, entry) : NULL;
		struct stat st;

		if (there && below_look(there, &st))
			add_gone(list, entry, there, &st, false);
		free(there);
	}
}

static bool is_own(const struct verb_list *list, const struct verb_entry *entry, const struct verb_node *node)
{
	char *there = verb_natural(list, entry);
	bool own = there && node->row.origin && !strcmp(there, node->row.origin);

	free(there);
	return own;
}

/* Of each node with a path: whether it still has its own name below, whatever others it has, was
 * moved, or differs. */
static int know_nodes(struct store *store, struct verb_list *list)
{
	for (size_t i = 0; i < list->entries_count; i++) {
		struct verb_node *node = list->entries[i].path ? verb_node(list, list->entries[i].ino) : NULL;

		if (node && is_own(list, &list->entries[i], node))
			node->kept = list->entries[i].path;
	}
	for (size_t i = 0; i < list->entries_count; i++) {
		struct verb_node *node = list->entries[i].path ? verb_node(list, list->entries[i].ino) : NULL;
		int r = 1;

		if (!node || node->known)
			continue;
		if (node->row.origin && (r = differs(store, &node->row, node->row.origin)) < 0)
			return r;
		node->differs = r;
		node->known = true;
		if (node->row.origin && !node->kept)
			map_put(&list->moved, node->row.origin, node);
	}
	return 0;
}

void verb_index(struct verb_list *list)
{
	for (size_t i = 0; i < list->changes_count; i++) {
		struct verb_change *change = &list->changes[i];

		if (change->from)
			map_put(&list->sources, change->from, change);
		if (change->kind != 'D')
			map_put(&list->paths, change->path, change);
	}
}

int verb_list(struct store *store, const struct verb_options *options, struct verb_list *list)
{
	int r;

	if ((r = below_begin(options->lower))) {
		lind_log("%s: %s", options->lower, strerror(-r));
		return 125;
	}
	if ((r = verb_load(store, list)) || (r = know_nodes(store, list)))
		return verb_failed(store, r);
	verb_find_merges(list);
	for (size_t i = 0; i < list->entries_count; i++) {
		struct verb_node *node = verb_node(list, list->entries[i].ino);

		if (node && list->entries[i].path)
			add_found(store, list, &list->entries[i], node);
	}
	add_removed(list);
	if ((r = check_words(list, options)))
		return r;
	choose(list, options);
	if (list->changes_count)
		qsort(list->changes, list->changes_count, sizeof *list->changes, by_path);
	verb_index(list);
	return 0;
}
