/* Inodes and names of a state. blocks.c has the blocks. */
#include "state.h"
#include "blocks.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t place_of(const struct store *store, uint64_t ino)
{
	size_t mask = store->inodes_size - 1, at = (size_t)(ino * 0x9e3779b97f4a7c15u >> 32) & mask;

	while (store->inodes[at] && store->inodes[at] != ino)
		at = (at + 1) & mask;
	return at;
}

static int grow(struct store *store)
{
	uint64_t *old = store->inodes;
	size_t old_size = store->inodes_size, size = old_size ? 2 * old_size : 1024;
	uint64_t *made = calloc(size, sizeof *made);

	if (!made)
		return -ENOMEM;
	store->inodes = made;
	store->inodes_size = size;
	for (size_t i = 0; i < old_size; i++)
		if (old[i])
			made[place_of(store, old[i])] = old[i];
	free(old);
	return 0;
}

static int remember(struct store *store, uint64_t ino)
{
	size_t at;
	int r;

	if (2 * (store->inodes_count + 1) > store->inodes_size && (r = grow(store)))
		return r;
	at = place_of(store, ino);
	store->inodes_count += !store->inodes[at];
	store->inodes[at] = ino;
	return 0;
}

/* Loads the inodes of all layers: those of an unseen layer cost a needless query, not a wrong
 * answer. */
static int load_inodes(struct store *store)
{
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(store->db, "select ino from nodes", -1, &statement, NULL), r;

	if (code)
		return store_fail(store, code);
	r = grow(store);
	while (!r && (code = sqlite3_step(statement)) == SQLITE_ROW)
		r = remember(store, (uint64_t)sqlite3_column_int64(statement, 0));
	if (!r && code != SQLITE_DONE)
		r = store_fail(store, code);
	sqlite3_finalize(statement);
	if (r) {
		free(store->inodes);
		store->inodes = NULL;
		store->inodes_size = store->inodes_count = 0;
	}
	return r;
}

bool store_has(struct store *store, uint64_t ino)
{
	/* If the set cannot be had, SQLite is asked each time. */
	if (!store->inodes && load_inodes(store))
		return true;
	return store->inodes[place_of(store, ino)] == ino;
}

static const char *text_of(sqlite3_stmt *row, int column)
{
	return sqlite3_column_type(row, column) == SQLITE_NULL ? NULL : (const char *)sqlite3_column_text(row, column);
}

static void fill(struct store_node *node, uint64_t ino, sqlite3_stmt *row)
{
	*node = (struct store_node){
		.ino = ino,
		.mode = (uint32_t)sqlite3_column_int64(row, 1),
		.nlink = (uint32_t)sqlite3_column_int64(row, 2),
		.uid = (uint32_t)sqlite3_column_int64(row, 3),
		.gid = (uint32_t)sqlite3_column_int64(row, 4),
		.rdev = (uint64_t)sqlite3_column_int64(row, 5),
		.size = sqlite3_column_int64(row, 6),
		.atime = of_nanoseconds(sqlite3_column_int64(row, 7)),
		.mtime = of_nanoseconds(sqlite3_column_int64(row, 8)),
		.ctime = of_nanoseconds(sqlite3_column_int64(row, 9)),
		.btime = of_nanoseconds(sqlite3_column_int64(row, 10)),
		.origin = text_of(row, 11),
		.origin_size = sqlite3_column_int64(row, 12),
		.stamp = {
			.ino = (uint64_t)sqlite3_column_int64(row, 13),
			.size = sqlite3_column_int64(row, 14),
			.mtime = of_nanoseconds(sqlite3_column_int64(row, 15)),
			.ctime = of_nanoseconds(sqlite3_column_int64(row, 16)),
		},
		.target = text_of(row, 17),
		.xattrs = sqlite3_column_blob(row, 18),
		.xattrs_size = (uint32_t)sqlite3_column_bytes(row, 18),
	};
}

int store_get(struct store *store, uint64_t ino, struct store_node *node)
{
	sqlite3_stmt *row = store_statement(store, GET);
	int code;

	if (!row)
		return -EIO;
	sqlite3_bind_int64(row, 1, (int64_t)ino);
	while ((code = sqlite3_step(row)) == SQLITE_ROW) {
		if (!store_sees(store, sqlite3_column_int64(row, 0)))
			continue;
		if (!sqlite3_column_int64(row, 1))
			return 0;
		/* The row stays where it is: what the node points to is in it. */
		fill(node, ino, row);
		return 1;
	}
	return code == SQLITE_DONE ? 0 : store_fail(store, code);
}

static void bind_path(sqlite3_stmt *statement, int at, const char *path)
{
	if (path)
		sqlite3_bind_blob(statement, at, path, (int)strlen(path), SQLITE_STATIC);
	else
		sqlite3_bind_null(statement, at);
}

int store_put(struct store *store, const struct store_node *node)
{
	const struct store_stamp *stamp = &node->stamp;
	const int64_t numbers[] = { (int64_t)node->ino, store_layer(store), node->mode, node->nlink, node->uid,
		node->gid, (int64_t)node->rdev, node->size, in_nanoseconds(node->atime), in_nanoseconds(node->mtime),
		in_nanoseconds(node->ctime), in_nanoseconds(node->btime), 0, node->origin_size, (int64_t)stamp->ino,
		stamp->size, in_nanoseconds(stamp->mtime), in_nanoseconds(stamp->ctime) };
	sqlite3_stmt *put;
	int r = store_begin(store);

	if (r || (store->inodes && (r = remember(store, node->ino))))
		return r;
	if (!(put = store_statement(store, PUT)))
		return -EIO;
	for (int i = 0; i < (int)(sizeof numbers / sizeof *numbers); i++)
		sqlite3_bind_int64(put, i + 1, numbers[i]);
	if (!node->origin)
		for (int i = 14; i <= 18; i++)
			sqlite3_bind_null(put, i);
	bind_path(put, 13, node->origin);
	bind_path(put, 19, node->target);
	if (node->xattrs_size)
		sqlite3_bind_blob(put, 20, node->xattrs, (int)node->xattrs_size, SQLITE_STATIC);
	else
		sqlite3_bind_null(put, 20);
	return store_run(store, put);
}

/* Whether a layer below has a row of the inode: then its end has to be written down. */
static int is_below(struct store *store, uint64_t ino)
{
	sqlite3_stmt *row;
	int code;

	if (store->depth == 1)
		return 0;
	if (!(row = store_statement(store, GONE_BELOW)))
		return -EIO;
	sqlite3_bind_int64(row, 1, (int64_t)ino);
	sqlite3_bind_int64(row, 2, store_layer(store));
	while ((code = sqlite3_step(row)) == SQLITE_ROW && !store_sees(store, sqlite3_column_int64(row, 0)))
		;
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return store_fail(store, code);
	code = code == SQLITE_ROW && sqlite3_column_int64(row, 1) != 0;
	sqlite3_reset(row);
	return code;
}

/* Blocks of layers below end at `size` too: the row of the inode says so, and is copied if this
 * layer has none. */
static int cut_below(struct store *store, uint64_t ino, int64_t size)
{
	struct store_node node;
	sqlite3_stmt *set;
	int r;

	if (store->depth == 1 || (r = store_get(store, ino, &node)) == 0)
		return 0;
	if (r < 0 || (r = store_put(store, &node)))
		return r;
	if (!(set = store_statement(store, SET_BASE)))
		return -EIO;
	sqlite3_bind_int64(set, 1, (int64_t)ino);
	sqlite3_bind_int64(set, 2, store_layer(store));
	sqlite3_bind_int64(set, 3, size);
	return store_run(store, set);
}

int store_cut(struct store *store, uint64_t ino, int64_t size)
{
	int r = blocks_cut(store, ino, size);

	return r ? r : cut_below(store, ino, size);
}

int store_forget(struct store *store, uint64_t ino)
{
	const struct store_node gone = { .ino = ino };
	sqlite3_stmt *forget;
	int r = store_cut(store, ino, 0), below;

	if (r || (below = is_below(store, ino)) < 0)
		return r ? r : below;
	if (below)
		return store_put(store, &gone);
	if (!(forget = store_statement(store, FORGET)))
		return -EIO;
	sqlite3_bind_int64(forget, 1, (int64_t)ino);
	sqlite3_bind_int64(forget, 2, store_layer(store));
	return store_run(store, forget);
}

int store_names(struct store *store, uint64_t dir, int (*each)(void *to, const char *name, uint64_t ino), void *to)
{
	sqlite3_stmt *row = store_statement(store, NAMES);
	char last[256] = "";
	int code, r = 0;

	if (!row)
		return -EIO;
	sqlite3_bind_int64(row, 1, (int64_t)dir);
	while (!r && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const void *name = sqlite3_column_blob(row, 0);
		int length = sqlite3_column_bytes(row, 0);

		if (!store_sees(store, sqlite3_column_int64(row, 2)))
			continue;
		/* A name that no directory could have is damage, and nothing to walk along. */
		if (!length || length > 255 || memchr(name, '/', (size_t)length) || memchr(name, 0, (size_t)length)) {
			sqlite3_reset(row);
			return store_fail(store, SQLITE_CORRUPT);
		}
		if (strlen(last) == (size_t)length && !memcmp(last, name, (size_t)length))
			continue;
		memcpy(last, name, (size_t)length);
		last[length] = 0;
		if (sqlite3_column_type(row, 1) != SQLITE_NULL)
			r = each(to, last, (uint64_t)sqlite3_column_int64(row, 1));
	}
	if (!r && code != SQLITE_DONE)
		r = store_fail(store, code);
	sqlite3_reset(row);
	return r;
}

static int set_name(struct store *store, uint64_t dir, const char *name, const uint64_t *ino)
{
	sqlite3_stmt *statement;
	int r = store_begin(store);

	if (r)
		return r;
	if (!(statement = store_statement(store, NAME)))
		return -EIO;
	sqlite3_bind_int64(statement, 1, (int64_t)dir);
	bind_path(statement, 2, name);
	sqlite3_bind_int64(statement, 3, store_layer(store));
	if (ino)
		sqlite3_bind_int64(statement, 4, (int64_t)*ino);
	else
		sqlite3_bind_null(statement, 4);
	return store_run(store, statement);
}

int store_name(struct store *store, uint64_t dir, const char *name, uint64_t ino)
{
	return set_name(store, dir, name, &ino);
}

static int is_name_below(struct store *store, uint64_t dir, const char *name)
{
	sqlite3_stmt *row;
	int code;

	if (store->depth == 1)
		return 0;
	if (!(row = store_statement(store, NAME_BELOW)))
		return -EIO;
	sqlite3_bind_int64(row, 1, (int64_t)dir);
	bind_path(row, 2, name);
	sqlite3_bind_int64(row, 3, store_layer(store));
	while ((code = sqlite3_step(row)) == SQLITE_ROW && !store_sees(store, sqlite3_column_int64(row, 0)))
		;
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return store_fail(store, code);
	code = code == SQLITE_ROW && sqlite3_column_type(row, 1) != SQLITE_NULL;
	sqlite3_reset(row);
	return code;
}

int store_unname(struct store *store, uint64_t dir, const char *name)
{
	sqlite3_stmt *statement;
	int r = store_begin(store), below;

	if (r || (below = is_name_below(store, dir, name)) < 0)
		return r ? r : below;
	if (below)
		return set_name(store, dir, name, NULL);
	if (!(statement = store_statement(store, UNNAME)))
		return -EIO;
	sqlite3_bind_int64(statement, 1, (int64_t)dir);
	bind_path(statement, 2, name);
	sqlite3_bind_int64(statement, 3, store_layer(store));
	return store_run(store, statement);
}

uint64_t store_next_ino(const struct store *store)
{
	return store->next_ino;
}

int store_took_ino(struct store *store, uint64_t next)
{
	if (next > store->next_ino) {
		store->next_ino = next;
		store->next_ino_changed = true;
	}
	return 0;
}

int store_log(struct store *store, struct timespec at, const char *command, char kind, const char *path, const char *to)
{
	sqlite3_stmt *log;
	int r = store_begin(store);

	if (r)
		return r;
	if (!(log = store_statement(store, LOG)))
		return -EIO;
	sqlite3_bind_int64(log, 1, in_nanoseconds(at));
	sqlite3_bind_int64(log, 2, store_layer(store));
	bind_path(log, 3, command);
	sqlite3_bind_text(log, 4, &kind, 1, SQLITE_TRANSIENT);
	bind_path(log, 5, path);
	bind_path(log, 6, to);
	return store_run(store, log);
}
