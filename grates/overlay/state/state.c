/* A state that is open: its statements, its errors, its transactions. */
#include "state.h"
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const texts[STATEMENTS] = {
	[BEGIN] = "begin immediate",
	[COMMIT] = "commit",
	[ROLLBACK] = "rollback",
	[GET] =
	    "select layer, mode, nlink, uid, gid, rdev, size, atime, mtime, ctime, btime, origin, origin_size, seen_ino, seen_size, seen_mtime, "
	    "seen_ctime, target, xattrs from nodes where ino = ?1 order by layer desc",
	[GONE_BELOW] = "select layer, mode from nodes where ino = ?1 and layer < ?2 order by layer desc",
	[PUT] =
	    "insert into nodes values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, 9223372036854775807) "
	    "on conflict do update set mode = ?3, nlink = ?4, uid = ?5, gid = ?6, rdev = ?7, size = ?8, atime = ?9, mtime = ?10, ctime = ?11, "
	    "btime = ?12, origin = ?13, origin_size = ?14, seen_ino = ?15, seen_size = ?16, seen_mtime = ?17, seen_ctime = ?18, target = ?19, xattrs = ?20",
	[FORGET] = "delete from nodes where ino = ?1 and layer = ?2",
	[BASES] = "select layer, base from nodes where ino = ?1 order by layer desc",
	[SET_BASE] = "update nodes set base = min(base, ?3) where ino = ?1 and layer = ?2",
	[NAMES] = "select name, ino, layer from names where dir = ?1 order by name, layer desc",
	[NAME] = "insert into names values(?1, ?2, ?3, ?4) on conflict do update set ino = ?4",
	[NAME_BELOW] = "select layer, ino from names where dir = ?1 and name = ?2 and layer < ?3 order by layer desc",
	[UNNAME] = "delete from names where dir = ?1 and name = ?2 and layer = ?3",
	[READ] = "select layer, held, zeros, bytes from blocks where ino = ?1 and chunk = ?2 order by layer desc",
	[READ_OWN] = "select held, zeros, bytes from blocks where ino = ?1 and chunk = ?2 and layer = ?3",
	[NEXT_CHUNK] = "select min(chunk) from blocks where ino = ?1 and chunk >= ?2",
	[WRITE] =
	    "insert into blocks values(?1, ?2, ?3, ?4, ?5, ?6) on conflict do update set held = ?4, zeros = ?5, bytes = ?6",
	[CUT] = "delete from blocks where ino = ?1 and layer = ?2 and chunk >= ?3",
	[DROP_BLOCKS] = "delete from blocks where ino = ?1 and chunk = ?2 and layer = ?3",
	[SIZE] = "select size from nodes where ino = ?1 and layer = ?2",
	[SLOTS] = "select chunk, held, zeros, bytes from blocks where ino = ?1",
	[OWN_SLOTS] = "select held, zeros, bytes from blocks where ino = ?1 and layer = ?2 and chunk >= ?3",
	[LOG] = "insert into log values(?1, ?2, ?3, ?4, ?5, ?6)",
	[NEXT_INO] = "update about set value = ?1 where key = 'next_ino'",
};

static int errno_of(int code)
{
	switch (code & 0xff) {
	case SQLITE_FULL:
		return -ENOSPC;
	case SQLITE_NOMEM:
		return -ENOMEM;
	case SQLITE_BUSY:
		return -EBUSY;
	default:
		return -EIO;
	}
}

static void undo(struct store *store)
{
	if (store->db && !sqlite3_get_autocommit(store->db))
		sqlite3_exec(store->db, "rollback", NULL, NULL, NULL);
	if (store->data && store->changed)
		data_undone(store->data);
	store->changed = false;
}

int store_fail(struct store *store, int code)
{
	snprintf(
	    store->problem, sizeof store->problem, "%s", store->db ? sqlite3_errmsg(store->db) : sqlite3_errstr(code));
	undo(store);
	return errno_of(code);
}

int store_blame(struct store *store, int error, const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	vsnprintf(store->problem, sizeof store->problem, format, ap);
	va_end(ap);
	undo(store);
	return error;
}

sqlite3_stmt *store_statement(struct store *store, enum statement which)
{
	sqlite3_stmt **statement = &store->statements[which];

	if (!*statement && sqlite3_prepare_v3(store->db, texts[which], -1, SQLITE_PREPARE_PERSISTENT, statement, NULL))
		store_fail(store, sqlite3_errcode(store->db));
	else
		sqlite3_reset(*statement);
	return *statement;
}

int store_run(struct store *store, sqlite3_stmt *statement)
{
	int code = sqlite3_step(statement);

	if (code == SQLITE_ROW || code == SQLITE_DONE) {
		sqlite3_reset(statement);
		sqlite3_clear_bindings(statement);
		return 0;
	}
	code = store_fail(store, code);
	sqlite3_reset(statement);
	return code;
}

int store_begin(struct store *store)
{
	sqlite3_stmt *begin;
	int r;

	if (store->changed)
		return 0;
	if (!(begin = store_statement(store, BEGIN)))
		return -EIO;
	if ((r = store_run(store, begin)))
		return r;
	store->changed = true;
	return 0;
}

int store_exec(struct store *store, const char *sql)
{
	int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);

	return code ? store_fail(store, code) : 0;
}

bool store_sees(const struct store *store, int64_t layer)
{
	size_t low = 0, high = store->depth;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (store->chain[middle] == layer)
			return true;
		if (store->chain[middle] > layer)
			low = middle + 1;
		else
			high = middle;
	}
	return false;
}

int store_load_chain(struct store *store)
{
	static const char text[] =
	    "with recursive chain(layer) as (select layer from heads where head = ?1 union all select parent from layers "
	    "join chain using (layer) where parent < layers.layer) select layer from chain join layers using (layer) order by layer desc";
	sqlite3_stmt *statement;
	int code = sqlite3_prepare_v2(store->db, text, -1, &statement, NULL);
	size_t room = 0;

	if (code)
		return store_fail(store, code);
	store->depth = 0;
	sqlite3_bind_text(statement, 1, store->head, -1, SQLITE_STATIC);
	while ((code = sqlite3_step(statement)) == SQLITE_ROW) {
		if (store->depth == room) {
			int64_t *more = realloc(store->chain, (room = room ? 2 * room : 16) * sizeof *more);

			if (!more) {
				code = SQLITE_NOMEM;
				break;
			}
			store->chain = more;
		}
		store->chain[store->depth++] = sqlite3_column_int64(statement, 0);
	}
	if (code != SQLITE_DONE)
		code = store_fail(store, code);
	sqlite3_finalize(statement);
	if (code != SQLITE_DONE)
		return code;
	return store->depth ? 0 : -ENOENT;
}

static int commit(struct store *store)
{
	sqlite3_stmt *statement;
	int r;

	/* A row that is still looked at would keep the log from ever being put into the file. */
	for (size_t i = 0; i < STATEMENTS; i++)
		sqlite3_reset(store->statements[i]);
	if (store->next_ino_changed) {
		if ((r = store_begin(store)))
			return r;
		if (!(statement = store_statement(store, NEXT_INO)))
			return -EIO;
		sqlite3_bind_int64(statement, 1, (int64_t)store->next_ino);
		if ((r = store_run(store, statement)))
			return r;
	}
	if (!store->changed)
		return 0;
	if (store->data && (r = data_sync(store->data)))
		return store_blame(store, r == -ENOSPC || r == -EDQUOT ? -ENOSPC : -EIO, "data: %s", strerror(-r));
	if (!(statement = store_statement(store, COMMIT)))
		return -EIO;
	if ((r = store_run(store, statement)))
		return r;
	if (store->data)
		data_committed(store->data);
	store->next_ino_changed = false;
	store->changed = false;
	store->unsynced = true;
	return 0;
}

int store_commit(struct store *store, bool durable)
{
	int r = commit(store);

	if (store->data && data_waits(store->data))
		durable = true;
	if (r || !durable || !store->unsynced)
		return r;
	if (fdatasync(store->vfs.wal)) {
		r = -errno;
		snprintf(store->problem, sizeof store->problem, "%s", strerror(-r));
		return r;
	}
	store->unsynced = false;
	if (store->data)
		data_durable(store->data);
	return 0;
}

const char *store_problem(const struct store *store)
{
	return store ? store->problem : "no memory";
}
