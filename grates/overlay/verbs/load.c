/* The rows of a state that its head sees, in memory: nodes, names, and where each of them is. A
 * state can come from elsewhere: what it says is checked. */
#include "tree.h"
#include "../state/state.h"
#include <errno.h>
#include <lind/options.h>
#include <stdlib.h>
#include <string.h>

#define PATHS (256 << 20) /* bytes of all paths; more are a state made to take memory */

static int by_ino(const void *a, const void *b)
{
	const struct verb_node *one = a, *other = b;

	return (one->row.ino > other->row.ino) - (one->row.ino < other->row.ino);
}

struct verb_node *verb_node(const struct verb_list *list, uint64_t ino)
{
	const struct verb_node key = { .row.ino = ino };

	return list->nodes_count ? bsearch(&key, list->nodes, list->nodes_count, sizeof key, by_ino) : NULL;
}

static bool is_part(const char *name, size_t length)
{
	return length && length < 256 && !(length == 1 && *name == '.') &&
	    !(length == 2 && name[0] == '.' && name[1] == '.');
}

bool verb_is_path(const char *path)
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

static void *kept(const void *bytes, size_t size)
{
	void *copy = bytes ? malloc(size + 1) : NULL;

	if (bytes && !copy)
		lind_die("no memory");
	return copy ? memcpy(copy, bytes, size) : NULL;
}

static char *kept_text(const char *text)
{
	return kept(text, text ? strlen(text) + 1 : 0);
}

static void add_node(struct verb_list *list, struct store_node row)
{
	if (!(list->nodes_count & (list->nodes_count - 1))) {
		struct verb_node *more =
		    realloc(list->nodes, (list->nodes_count ? 2 * list->nodes_count : 1) * sizeof *more);

		if (!more)
			lind_die("no memory");
		list->nodes = more;
	}
	row.origin = kept_text(row.origin);
	row.target = kept_text(row.target);
	row.xattrs = kept(row.xattrs, row.xattrs_size);
	list->nodes[list->nodes_count++] = (struct verb_node){ .row = row };
}

static int load_nodes(struct store *store, struct verb_list *list)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(
		store->db, "select distinct ino from nodes where ino not in (0, -1)", -1, &statement, NULL),
	    r = 0;
	struct store_node row;

	if (code)
		return store_fail(store, code);
	while (r >= 0 && (code = sqlite3_step(statement)) == SQLITE_ROW) {
		if ((r = store_get(store, (uint64_t)sqlite3_column_int64(statement, 0), &row)) <= 0)
			continue;
		if (row.size < 0 || (row.origin && !verb_is_path(row.origin)))
			r = store_fail(store, SQLITE_CORRUPT);
		else
			add_node(list, row);
	}
	sqlite3_finalize(statement);
	if (list->nodes_count)
		qsort(list->nodes, list->nodes_count, sizeof *list->nodes, by_ino);
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
	list->entries[list->entries_count] = (struct verb_entry){ dir, ino, strndup(name, length), NULL };
	return list->entries[list->entries_count++].name ? 0 : -ENOMEM;
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
		/* An entry that is the same as below is kept as an unused number, to hide the rows of older
		 * layers. */
		r = add_entry(list, dir, name, length,
		    sqlite3_column_type(row, 2) == SQLITE_NULL ? UINT64_MAX : (uint64_t)sqlite3_column_int64(row, 2));
	}
	sqlite3_finalize(row);
	return r ? r : code == SQLITE_DONE ? 0 : store_fail(store, code);
}

bool verb_is_later(const struct timespec *one, const struct timespec *other)
{
	return one->tv_sec != other->tv_sec ? one->tv_sec > other->tv_sec : one->tv_nsec > other->tv_nsec;
}

char *verb_joined(const char *dir, const char *name)
{
	size_t length = strlen(dir);
	char *path = malloc(length + strlen(name) + 2);

	if (!path)
		lind_die("no memory");
	memcpy(path, dir, length);
	if (length)
		path[length++] = '/';
	strcpy(path + length, name);
	return path;
}

size_t verb_first_in(const struct verb_list *list, uint64_t dir)
{
	size_t low = 0, high = list->entries_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (list->entries[middle].dir < dir)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Goes down from the root: entries that are not reached are in no directory that is seen. A
 * directory that already has a path has been visited: that is a circle. */
static int place(struct store *store, struct verb_list *list)
{
	struct verb_entry **directories = malloc((list->entries_count + 1) * sizeof *directories);
	size_t count = 0, bytes = 0;
	uint64_t dir = STORE_ROOT;
	const char *path = "";

	if (!directories)
		lind_die("no memory");
	for (;;) {
		for (size_t i = verb_first_in(list, dir);
		    i < list->entries_count && list->entries[i].dir == dir && !list->entries[i].path; i++) {
			struct verb_entry *entry = &list->entries[i];
			struct verb_node *node = verb_node(list, entry->ino);

			entry->path = verb_joined(path, entry->name);
			if ((bytes += strlen(entry->path)) > PATHS) {
				free(directories);
				snprintf(store->problem, sizeof store->problem,
				    "the paths in the state are too long altogether");
				return -E2BIG;
			}
			if (!node || !S_ISDIR(node->row.mode) || node->entry || entry->ino == STORE_ROOT)
				continue;
			node->entry = entry;
			directories[count++] = entry;
		}
		if (!count)
			break;
		dir = directories[--count]->ino;
		path = directories[count]->path;
	}
	free(directories);
	return 0;
}

char *verb_natural(const struct verb_list *list, const struct verb_entry *entry)
{
	const struct verb_node *dir = verb_node(list, entry->dir);

	if (!dir)
		return entry->dir == STORE_ROOT ? kept_text(entry->name) : NULL;
	return dir->row.origin ? verb_joined(dir->row.origin, entry->name) : NULL;
}

int verb_load(struct store *store, struct verb_list *list)
{
	int r = load_nodes(store, list);

	if (r || (r = load_entries(store, list)) || (r = place(store, list)))
		return r;
	for (size_t i = 0; i < list->entries_count; i++) {
		char *there = list->entries[i].ino ? NULL : verb_natural(list, &list->entries[i]);

		if (there)
			map_put(&list->left, there, &list->entries[i]);
	}
	return 0;
}
