/*
 * The list of changes. Each row of a name says what there is under it; what would be there without the row is the same name in the directory that its
 * directory was (the origin). From the two come the kinds.
 */
#include "verb_tree.h"
#include "state.h"
#include <errno.h>
#include <lind/grate.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <limits.h>
#include <sys/xattr.h>

#define DEPTH 4096	/* directories in each other; more would be a circle */

static int by_ino(const void *a, const void *b)
{
	const struct verb_node *one = a, *other = b;

	return (one->row.ino > other->row.ino) - (one->row.ino < other->row.ino);
}

const struct verb_node *verb_node(const struct verb_list *list, uint64_t ino)
{
	const struct verb_node key = { .row.ino = ino };

	return list->nodes_count ? bsearch(&key, list->nodes, list->nodes_count, sizeof key, by_ino) : NULL;
}

static bool is_part(const char *name, size_t length)
{
	return length && length < 256 && !(length == 1 && *name == '.') && !(length == 2 && name[0] == '.' && name[1] == '.');
}

/* A state can come from elsewhere: what it calls a path has to be one. */
static bool is_path(const char *path)
{
	if (!*path)
		return true;
	for (;;) {
		const char *slash = strchr(path, '/');

		if (!is_part(path, slash ? (size_t)(slash - path) : strlen(path)))
			return false;
		if (!slash)
			return true;
		path = slash + 1;
	}
}

static int load_nodes(struct store *store, struct verb_list *list)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(store->db, "select distinct ino from nodes order by ino", -1, &statement, NULL), r = 0;
	size_t room = 0;

	if (code)
		return store_fail(store, code);
	while (r >= 0 && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		struct verb_node node = { 0 };

		if ((r = store_get(store, (uint64_t)sqlite3_column_int64(statement, 0), &node.row)) <= 0)
			continue;
		if (list->nodes_count == room) {
			struct verb_node *more = realloc(list->nodes, (room = room ? 2 * room : 64) * sizeof *more);

			if (!more) {
				r = -ENOMEM;
				break;
			}
			list->nodes = more;
		}
		node.row.origin = node.row.origin ? strdup(node.row.origin) : NULL;
		node.row.target = node.row.target ? strdup(node.row.target) : NULL;
		node.row.xattrs = node.row.xattrs_size ? memcpy(malloc(node.row.xattrs_size), node.row.xattrs, node.row.xattrs_size) : NULL;
		if (node.row.origin && !is_path(node.row.origin))
			r = store_fail(store, SQLITE_CORRUPT);
		list->nodes[list->nodes_count++] = node;
	}
	sqlite3_finalize(statement);
	return r < 0 ? r : code == SQLITE_DONE ? 0 : store_fail(store, code);
}

static int add_entry(struct verb_list *list, uint64_t dir, const char *name, size_t length, uint64_t ino)
{
	if (!(list->entries_count & (list->entries_count - 1))) {
		size_t room = list->entries_count ? 2 * list->entries_count : 1;
		struct verb_entry *more = realloc(list->entries, room * sizeof *more);

		if (!more)
			return -ENOMEM;
		list->entries = more;
	}
	list->entries[list->entries_count++] = (struct verb_entry){ dir, ino, strndup(name, length), NULL };
	return 0;
}

static int load_entries(struct store *store, struct verb_list *list)
{
	static const char text[] = "select dir, name, ino, layer from names order by dir, name, layer desc";
	struct verb_entry *last = NULL;
	sqlite3_stmt *row;
	int code = sqlite3_prepare_v2(store->db, text, -1, &row, NULL), r = 0;

	if (code)
		return store_fail(store, code);
	while (!r && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const char *name = sqlite3_column_blob(row, 1);
		size_t length = (size_t)sqlite3_column_bytes(row, 1);
		uint64_t dir = (uint64_t)sqlite3_column_int64(row, 0);

		if (!store_sees(store, sqlite3_column_int64(row, 3)))
			continue;
		if (!is_part(name, length) || memchr(name, '/', length) || memchr(name, 0, length)) {
			r = store_fail(store, SQLITE_CORRUPT);
			break;
		}
		last = list->entries_count ? &list->entries[list->entries_count - 1] : NULL;
		if (last && last->dir == dir && strlen(last->name) == length && !memcmp(last->name, name, length))
			continue;
		/* What is as below is kept as a number that nothing has, to hide the rows of older layers. */
		r = add_entry(list, dir, name, length, sqlite3_column_type(row, 2) == SQLITE_NULL ? UINT64_MAX : (uint64_t)sqlite3_column_int64(row, 2));
	}
	sqlite3_finalize(row);
	return r ? r : code == SQLITE_DONE ? 0 : store_fail(store, code);
}

static char *joined(const char *dir, const char *name)
{
	size_t length = strlen(dir);
	char *path = malloc(length + strlen(name) + 2);

	if (!path)
		lind_die("no memory");
	strcpy(path, dir);
	if (length)
		path[length++] = '/';
	strcpy(path + length, name);
	return path;
}

/* Goes down from the root: what is not reached is in no directory that is seen. */
static void place(struct verb_list *list, uint64_t dir, const char *path, unsigned depth)
{
	size_t low = 0, high = list->entries_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->entries[middle].dir < dir)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < list->entries_count && list->entries[low].dir == dir; low++) {
		struct verb_entry *entry = &list->entries[low];
		const struct verb_node *node;

		if (entry->path)
			return;
		entry->path = joined(path, entry->name);
		node = entry->ino && entry->ino != UINT64_MAX ? verb_node(list, entry->ino) : NULL;
		if (node && S_ISDIR(node->row.mode) && depth < DEPTH)
			place(list, entry->ino, entry->path, depth + 1);
	}
}

static bool is_meant(const struct verb_options *options, const char *path)
{
	if (!path || !options->words_count)
		return path != NULL;
	for (int i = 0; i < options->words_count; i++) {
		const char *word = options->words[i];
		size_t length;

		while (!strncmp(word, "./", 2))
			word += 2;
		length = strlen(word);
		while (length && word[length - 1] == '/')
			length--;
		if (!length || !strcmp(word, ".") || (!strncmp(path, word, length) && (!path[length] || path[length] == '/')))
			return true;
	}
	return false;
}

static void add(struct verb_list *list, const struct verb_options *options, struct verb_change change)
{
	if (!is_meant(options, change.path) && !is_meant(options, change.from)) {
		free(change.path);
		return;
	}
	if (!(list->changes_count & (list->changes_count - 1))) {
		struct verb_change *more = realloc(list->changes, (list->changes_count ? 2 * list->changes_count : 1) * sizeof *more);

		if (!more)
			lind_die("no memory");
		list->changes = more;
	}
	list->changes[list->changes_count++] = change;
}

bool verb_next_xattr(const struct store_node *row, struct verb_xattr *x)
{
	const char *end = (const char *)row->xattrs + row->xattrs_size, *at = x->name ? x->value + x->size : row->xattrs, *after;

	if (at >= end || !(after = memchr(at, 0, (size_t)(end - at))) || (size_t)(end - ++after) < sizeof x->size)
		return false;
	x->name = at;
	memcpy(&x->size, after, sizeof x->size);
	x->value = after + sizeof x->size;
	return x->size <= (size_t)(end - x->value);
}

/* Those of users are kept. `fd` is of the file below. */
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

static bool directory_differs(const struct store_node *node)
{
	int fd = *node->origin ? below_directory(node->origin) : -1;
	bool differs = fd >= 0 && !same_xattrs(fd, node);

	if (fd >= 0)
		close(fd);
	return differs;
}

/* Whether a file differs from the one at its origin by more than times. */
static int differs(struct store *store, const struct store_node *node)
{
	static uint8_t ours[STORE_CHUNK], theirs[STORE_CHUNK];
	struct stat st;
	int fd, r = 0;

	if (!below_look(node->origin, &st) || st.st_mode != node->mode || st.st_uid != node->uid || st.st_gid != node->gid)
		return 1;
	if (S_ISLNK(node->mode)) {
		ssize_t n = below_link(node->origin, (char *)theirs, sizeof theirs);

		return n < 0 || !node->target || strlen(node->target) != (size_t)n || memcmp(node->target, theirs, (size_t)n);
	}
	if (S_ISDIR(node->mode))
		return directory_differs(node);
	if (!S_ISREG(node->mode))
		return 0;
	if (st.st_size != node->size || (fd = below_open(node->origin)) < 0)
		return 1;
	for (uint64_t chunk = 0; !r && (int64_t)(chunk * STORE_CHUNK) < node->size; chunk++) {
		ssize_t have = verb_chunk(store, node, fd, chunk, ours), n = pread(fd, theirs, STORE_CHUNK, (off_t)(chunk * STORE_CHUNK));

		r = have < 0 ? (int)have : n < have || memcmp(ours, theirs, (size_t)have);
	}
	r = r ? r : !same_xattrs(fd, node);
	close(fd);
	return r;
}

bool verb_is_stale(const struct verb_change *change)
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

/* What would be under the name without the row, as a path below; NULL if its directory is none of below's. */
static char *natural(const struct verb_list *list, const struct verb_entry *entry)
{
	const struct verb_node *dir = verb_node(list, entry->dir);

	if (!dir)
		return entry->dir == STORE_ROOT ? strdup(entry->name) : NULL;
	return dir->row.origin ? joined(dir->row.origin, entry->name) : NULL;
}

const struct verb_entry *verb_left(const struct verb_list *list, const char *from)
{
	const struct verb_entry *found = NULL;

	for (size_t i = 0; i < list->entries_count && !found; i++) {
		char *there = list->entries[i].ino ? NULL : natural(list, &list->entries[i]);

		if (there && !strcmp(there, from))
			found = &list->entries[i];
		free(there);
	}
	return found;
}

static bool is_later(const struct timespec *one, const struct timespec *other)
{
	return one->tv_sec != other->tv_sec ? one->tv_sec > other->tv_sec : one->tv_nsec > other->tv_nsec;
}

static int add_found(struct store *store, struct verb_list *list, const struct verb_options *options, struct verb_entry *entry, struct verb_node *node)
{
	char *there = natural(list, entry);
	const struct store_node *row = &node->row;
	bool own = there && row->origin && !strcmp(there, row->origin);
	struct verb_change change = { .path = strdup(entry->path), .node = node, .dir = entry->dir, .name = entry->name, .type = row->mode & S_IFMT };
	struct stat st;
	bool hides = there && !own && below_look(there, &st);
	int r = row->origin ? differs(store, row) : 1;

	if (r < 0)
		return r;
	/* What took the place of another file has no note of how that was, but is older than whatever was done to it since. */
	change.late = hides && !row->origin && is_later(&st.st_ctim, &row->btime);
	change.touched = r;
	change.from = row->origin ? strdup(row->origin) : NULL;
	/* A directory in the place of something, or something in the place of a directory. */
	if (hides && (S_ISDIR(st.st_mode) || S_ISDIR(row->mode)))
		add(list, options, (struct verb_change){ .kind = 'D', .path = strdup(there), .from = strdup(there), .dir = entry->dir, .name = entry->name,
			.type = st.st_mode & S_IFMT, .late = change.late });
	if (own) {
		change.kind = 'M';
		if (r)
			add(list, options, change);
	} else if (row->origin && !node->moved && !node->kept) {
		change.kind = 'R';
		node->moved = true;
		add(list, options, change);
	} else {
		change.kind = hides && !S_ISDIR(st.st_mode) && !S_ISDIR(row->mode) ? 'M' : 'A';
		if (!row->origin && change.kind == 'M')
			change.from = strdup(there);
		add(list, options, change);
	}
	free(there);
	return 0;
}

static int by_path(const void *a, const void *b)
{
	const struct verb_change *one = a, *other = b;
	int order = strcmp(one->path, other->path);

	/* What was there goes before what comes. */
	return order ? order : (other->kind == 'D') - (one->kind == 'D');
}

static bool is_moved(const struct verb_list *list, const char *path)
{
	for (size_t i = 0; i < list->nodes_count; i++)
		if (list->nodes[i].moved && !strcmp(list->nodes[i].row.origin, path))
			return true;
	return false;
}

static void add_removed(struct verb_list *list, const struct verb_options *options)
{
	for (size_t i = 0; i < list->entries_count; i++) {
		struct verb_entry *entry = &list->entries[i];
		char *there = entry->path && !entry->ino ? natural(list, entry) : NULL;
		struct stat st;

		if (there && !is_moved(list, there) && below_look(there, &st))
			add(list, options, (struct verb_change){ .kind = 'D', .path = strdup(there), .from = strdup(there), .dir = entry->dir, .name = entry->name,
				.type = st.st_mode & S_IFMT });
		free(there);
	}
}

/* What something else stands in the place of is not gone if it was moved. */
static void drop_moved(struct verb_list *list)
{
	size_t count = 0;

	for (size_t i = 0; i < list->changes_count; i++)
		if (list->changes[i].kind != 'D' || !is_moved(list, list->changes[i].from))
			list->changes[count++] = list->changes[i];
	list->changes_count = count;
}

int verb_list(struct store *store, const struct verb_options *options, struct verb_list *list)
{
	int r;

	if ((r = below_begin(options->lower))) {
		lind_log("%s: %s", options->lower, strerror(-r));
		return 125;
	}
	if ((r = load_nodes(store, list)) || (r = load_entries(store, list)))
		return verb_failed(store, r);
	place(list, STORE_ROOT, "", 0);
	/* A file that still has its own name is not moved, whatever other names it has. */
	for (size_t i = 0; i < list->entries_count; i++) {
		struct verb_node *node = (struct verb_node *)verb_node(list, list->entries[i].ino);
		char *there = node && list->entries[i].path ? natural(list, &list->entries[i]) : NULL;

		if (there && node->row.origin && !strcmp(there, node->row.origin))
			node->kept = list->entries[i].path;
		free(there);
	}
	for (size_t i = 0; i < list->entries_count; i++) {
		struct verb_node *node = (struct verb_node *)verb_node(list, list->entries[i].ino);

		if (node && list->entries[i].path && (r = add_found(store, list, options, &list->entries[i], node)))
			return verb_failed(store, r);
	}
	drop_moved(list);
	add_removed(list, options);
	if (list->changes_count)
		qsort(list->changes, list->changes_count, sizeof *list->changes, by_path);
	return 0;
}
