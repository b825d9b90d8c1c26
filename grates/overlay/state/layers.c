/* The tree of layers: what snapshot, rollback and fork do to it. */
#include "layers.h"
#include "outside.h"
#include "state.h"
#include <errno.h>
#include <stdarg.h>
#include <string.h>

/* Runs SQL, with texts as sqlite3_mprintf has them, in one transaction. */
static int change(struct store *store, const char *format, ...)
{
	va_list ap;
	char *sql;
	int r = store_begin(store);

	if (r)
		return r;
	va_start(ap, format);
	sql = sqlite3_vmprintf(format, ap);
	va_end(ap);
	r = sql ? store_exec(store, sql) : store_fail(store, SQLITE_NOMEM);
	sqlite3_free(sql);
	return r;
}

/* A number of the first row; -1 if there is none, or an error. */
static int64_t ask(struct store *store, const char *sql, const char *name)
{
	sqlite3_stmt *statement;
	int64_t found = -1;

	if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL))
		return store_fail(store, sqlite3_errcode(store->db));
	sqlite3_bind_text(statement, 1, name, -1, SQLITE_STATIC);
	if (sqlite3_step(statement) == SQLITE_ROW)
		found = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return found;
}

static int64_t now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	return in_nanoseconds(ts);
}

/* A new layer on `parent` for a head, which becomes its own. */
static int put_on_top(struct store *store, int64_t parent, const char *head)
{
	int64_t layer = ask(store, "select coalesce(max(layer), 0) + 1 from layers", NULL);

	if (layer < 1)
		return -EIO;
	return change(store,
	    "insert into layers values(%lld, nullif(%lld, 0), null, %lld); "
	    "insert into heads values(%Q, %lld) on conflict do update set layer = %lld",
	    (long long)layer, (long long)parent, (long long)now(), head, (long long)layer, (long long)layer);
}

static int done(struct store *store, int r)
{
	store->untidy = true;
	if (r || (r = store_commit(store, true)))
		return r;
	return store_load_chain(store);
}

int store_snapshot(struct store *store, const char *name)
{
	int r;

	if (ask(store, "select layer from layers where name = ?1", name) >= 0)
		return -EEXIST;
	r = change(store, "update layers set name = %Q where layer = %lld", name, (long long)store_layer(store));
	return done(store, r ? r : put_on_top(store, store_layer(store), store->head));
}

int store_rollback(struct store *store, const char *name)
{
	int64_t layer = name ? ask(store, "select layer from layers where name = ?1", name) : 0;

	return layer < 0 ? -ENOENT : done(store, put_on_top(store, layer, store->head));
}

int store_fork(struct store *store, const char *name)
{
	int64_t shared = store_layer(store);
	int r;

	if (ask(store, "select layer from heads where head = ?1", name) >= 0)
		return -EEXIST;
	r = put_on_top(store, shared, store->head);
	return done(store, r ? r : put_on_top(store, shared, name));
}

int store_layers(struct store *store, int (*each)(void *to, const struct store_layer *layer), void *to)
{
	sqlite3_stmt *row;
	int code = sqlite3_prepare_v2(store->db,
		"select layers.layer, parent, name, head, made from layers left join heads using (layer) "
		"order by layer, head",
		-1, &row, NULL),
	    r = 0;

	if (code)
		return store_fail(store, code);
	while (!r && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const struct store_layer layer = {
			.layer = sqlite3_column_int64(row, 0),
			.parent = sqlite3_column_int64(row, 1),
			.snapshot = (const char *)sqlite3_column_text(row, 2),
			.head = (const char *)sqlite3_column_text(row, 3),
			.made = of_nanoseconds(sqlite3_column_int64(row, 4)),
		};

		r = each(to, &layer);
	}
	if (!r && code != SQLITE_DONE)
		r = store_fail(store, code);
	sqlite3_finalize(row);
	return r;
}

char *store_lower(struct store *store)
{
	sqlite3_stmt *statement;
	char *lower = NULL;

	if (sqlite3_prepare_v2(store->db, "select value from about where key = 'lower'", -1, &statement, NULL))
		return NULL;
	if (sqlite3_step(statement) == SQLITE_ROW && sqlite3_column_type(statement, 0) == SQLITE_TEXT)
		lower = strdup((const char *)sqlite3_column_text(statement, 0));
	sqlite3_finalize(statement);
	return lower;
}

uint64_t store_lower_ino(struct store *store)
{
	int64_t ino = ask(store, "select value from about where key = 'lower_ino'", NULL);

	return ino < 0 ? 0 : (uint64_t)ino;
}

int store_lower_is(struct store *store, uint64_t ino)
{
	if (store_lower_ino(store) == ino)
		return 0;
	return change(store, "insert or replace into about values('lower_ino', %lld)", (long long)ino);
}

int64_t store_changes(struct store *store)
{
	/* A name that is gone does not count if its file has another name now. */
	static const char text[] =
	    "with recursive chain(layer) as (select ?1 union select parent from layers join chain using (layer) where parent is not null), "
	    "entry as (select dir, name, ino, max(layer) from names where layer in chain group by dir, name), "
	    "node as (select ino, mode, cast(origin as text) as origin, max(layer) from nodes where layer in chain group by ino), "
	    "file as (select distinct ino, origin from entry join node using (ino) where mode & 61440 != 16384 and mode != 0) "
	    "select (select count(*) from file) + (select count(*) from entry left join node on node.ino = entry.dir where entry.ino = 0 and "
	    "coalesce(case when entry.dir = 1 then '' else origin || '/' end || cast(name as text), '') not in (select origin from file where origin is not null))";
	sqlite3_stmt *statement;
	int64_t count;

	if (sqlite3_prepare_v2(store->db, text, -1, &statement, NULL))
		return store_fail(store, sqlite3_errcode(store->db));
	sqlite3_bind_int64(statement, 1, store_layer(store));
	count = sqlite3_step(statement) == SQLITE_ROW ? sqlite3_column_int64(statement, 0)
						      : store_fail(store, sqlite3_errcode(store->db));
	sqlite3_finalize(statement);
	return count;
}

/* A text that a damaged file lacks is empty. */
static const char *text_of(sqlite3_stmt *row, int column)
{
	const char *text = (const char *)sqlite3_column_text(row, column);

	return text ? text : "";
}

int store_log_lines(struct store *store, int (*each)(void *to, const struct store_log_line *line), void *to)
{
	sqlite3_stmt *row;
	int code = sqlite3_prepare_v2(
		store->db, "select layer, at, command, kind, path, other from log order by at, rowid", -1, &row, NULL),
	    r = 0;

	if (code)
		return store_fail(store, code);
	while (!r && (code = sqlite3_step(row)) == SQLITE_ROW) {
		const struct store_log_line line = {
			.at = of_nanoseconds(sqlite3_column_int64(row, 1)),
			.command = (const char *)sqlite3_column_text(row, 2),
			.kind = *text_of(row, 3),
			.path = text_of(row, 4),
			.other = (const char *)sqlite3_column_text(row, 5),
		};

		if (store_sees(store, sqlite3_column_int64(row, 0)))
			r = each(to, &line);
	}
	if (!r && code != SQLITE_DONE)
		r = store_fail(store, code);
	sqlite3_finalize(row);
	return r;
}

int64_t store_log_end(struct store *store)
{
	return ask(store, "select coalesce(max(rowid), 0) from log", NULL);
}

int store_tidy(struct store *store)
{
	static const char needed[] =
	    "with recursive needed(layer) as (select layer from heads union select layer from layers where name is not null "
	    "union select parent from layers join needed using (layer) where parent is not null) ";
	static const char *const tables[] = { "nodes", "names", "log", "layers" };
	char *sql = sqlite3_mprintf("%sselect count(*) from layers where layer not in needed", needed);
	int64_t unneeded = sql ? ask(store, sql, NULL) : 0;
	int r = 0;

	sqlite3_free(sql);
	if (unneeded <= 0)
		return 0;
	/* By the index of the key, without a look at the bytes. */
	r = change(store,
	    "%sdelete from blocks where rowid in (select rowid from blocks indexed by sqlite_autoindex_blocks_1 where layer not in needed)",
	    needed);
	for (size_t i = 0; !r && i < sizeof tables / sizeof *tables; i++)
		r = change(store, "%sdelete from %s where layer not in needed", needed, tables[i]);
	if (r || (r = store_commit(store, true)))
		return r;
	return store_sweep(store);
}
