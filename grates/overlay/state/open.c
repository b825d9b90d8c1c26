/* A state as a whole: opened, made, committed, closed. */
#include "state.h"
#include "layers.h"
#include "outside.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "schema.h"

#define APPLICATION 0x6c696e64 /* tells file(1) that it is one of ours */
#define FORMAT      1

/* How SQLite's files begin, and where they say whose they are. */
static const char magic[16] = "SQLite format 3";
static const char first[] = "SQLite format 3\0\x10\0\1\1\0\x40\x20\x20"; /* of a new one, as it is written first */
#define APPLICATION_AT 68
#define PAGE_START     72
#define PAGE           4096

/* One value of a query; `missing` if there is none. */
static int64_t number(struct store *store, const char *sql, int64_t missing)
{
	sqlite3_stmt *statement;

	if (sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL))
		return missing;
	if (sqlite3_step(statement) == SQLITE_ROW)
		missing = sqlite3_column_int64(statement, 0);
	sqlite3_finalize(statement);
	return missing;
}

/* Whether a first page says that it is one of ours. */
static bool is_own_page(const uint8_t page[static PAGE_START])
{
	static const uint8_t own[4] = { APPLICATION >> 24, APPLICATION >> 16 & 255, APPLICATION >> 8 & 255,
		APPLICATION & 255 };

	return !memcmp(page, magic, sizeof magic) && !memcmp(page + APPLICATION_AT, own, sizeof own);
}

/* A run that did not come to its end may have left it in the log alone, as the first page there. */
static bool is_own_log(int wal)
{
	uint8_t start[32 + 24 + PAGE_START]; /* the headers of the log and of the page */

	return pread(wal, start, sizeof start, 0) == sizeof start && is_own_page(start + 32 + 24);
}

/* The first page is written without a log. If the power failed meanwhile, the part of it that is
 * there is empty where a database of another program is not. */
static bool is_unborn(const uint8_t *bytes, size_t size)
{
	bool is_begun = size >= sizeof magic && !memcmp(bytes, first, size < sizeof first ? size : sizeof first - 1);
	size_t at = is_begun ? APPLICATION_AT : 0;

	while (at < size && !bytes[at])
		at++;
	return at >= size;
}

static int refuse(struct store *store, int error, const char *problem)
{
	snprintf(store->problem, sizeof store->problem, "%s", problem);
	return error;
}

/* Before anything is written: a file that somebody has named by mistake stays as it is. `makes`:
 * what holds nothing becomes a state. */
static int admit(struct store *store, int db, int wal, bool makes)
{
	uint8_t start[PAGE];
	struct stat st, log;
	ssize_t size = pread(db, start, sizeof start, 0);

	if (size < 0 || fstat(db, &st) || fstat(wal, &log))
		return refuse(store, -errno, strerror(errno));
	if ((size >= PAGE_START && is_own_page(start)) || is_own_log(wal))
		return 0;
	if (log.st_size || st.st_size > PAGE || !is_unborn(start, (size_t)size))
		return refuse(store, -EINVAL, "not the state of an overlay");
	if (!makes)
		return refuse(store, -EINVAL, "no state");
	return st.st_size && ftruncate(db, 0) ? refuse(store, -errno, strerror(errno)) : 0;
}

static int make(struct store *store, const char *lower)
{
	struct timespec now;
	char *sql;
	int r;

	clock_gettime(CLOCK_REALTIME, &now);
	if ((r = store_exec(store, "begin immediate")) || (r = store_exec(store, schema)))
		return r;
	sql = sqlite3_mprintf(
	    "insert into about values('lower', %Q), ('next_ino', %lld); insert into layers values(1, null, null, %lld); "
	    "insert into heads values('main', 1); pragma user_version = %d; commit",
	    lower, (long long)STORE_FIRST_INO, (long long)in_nanoseconds(now), FORMAT);
	if (!sql)
		return store_fail(store, SQLITE_NOMEM);
	r = store_exec(store, sql);
	sqlite3_free(sql);
	store->unsynced = true;
	return r;
}

static int check(struct store *store, const char *lower)
{
	sqlite3_stmt *statement;
	int64_t format = number(store, "pragma user_version", -1);
	bool same = true;
	int code;

	/* The power failed before there was more to it than whose it is. */
	if (!format)
		return refuse(store, -EINVAL, "no state");
	if (format != FORMAT) {
		snprintf(store->problem, sizeof store->problem, "a state of another version (%lld)", (long long)format);
		return -EIO;
	}
	if ((code = sqlite3_prepare_v2(store->db, "select value from about where key = 'lower'", -1, &statement, NULL)))
		return store_fail(store, code);
	if (sqlite3_step(statement) == SQLITE_ROW) {
		const char *known = (const char *)sqlite3_column_text(statement, 0);

		same = !lower || (known && !strcmp(known, lower));
		if (!same)
			snprintf(store->problem, sizeof store->problem, "the state belongs to the directory %s",
			    known ? known : "?");
	}
	sqlite3_finalize(statement);
	store->next_ino =
	    (uint64_t)number(store, "select value from about where key = 'next_ino'", (int64_t)STORE_FIRST_INO);
	return same ? 0 : -EXDEV;
}

/* Settings of the connection. The mode WAL stays in the file; without exclusive locking it would
 * want memory that processes share. A new state says whose it is with the first page that is
 * written of it. */
static int set_up(struct store *store, bool is_new)
{
	static const char settings[] =
	    "pragma locking_mode = exclusive; pragma temp_store = memory; pragma page_size = 4096; pragma cell_size_check = on; "
	    "pragma trusted_schema = off; pragma cache_size = -8192; pragma synchronous = normal; pragma journal_mode = memory";
	char own[64];
	int r;

	snprintf(own, sizeof own, "pragma application_id = %d", APPLICATION);
	if ((r = store_exec(store, settings)) || (is_new && (r = store_exec(store, own))))
		return r;
	return store_exec(
	    store, "pragma journal_mode = wal; pragma wal_autocheckpoint = 8192; pragma journal_size_limit = 33554432");
}

static int open_database(struct store *store, const char *lower)
{
	int code = sqlite3_open_v2("state.db", &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, store->vfs_name);
	struct stat st;
	int r;

	if (code)
		return store_fail(store, code);
	sqlite3_extended_result_codes(store->db, 1);
	if (fstat(store->vfs.db, &st))
		return -errno;
	if ((r = set_up(store, !st.st_size)))
		return r;
	if (lower && !number(store, "select count(*) from sqlite_schema", -1) && (r = make(store, lower)))
		return r;
	if ((r = check(store, lower)))
		return r;
	r = store_load_chain(store);
	if (r == -ENOENT)
		snprintf(store->problem, sizeof store->problem, "no head '%s'", store->head);
	return r;
}

/* The last user of the state did not come to the end: blocks may have been written that no row
 * names. Blocks that cannot be freed stay. */
static void recover(struct store *store)
{
	if (store_sweep(store))
		store->problem[0] = 0;
}

int store_open(struct store **made, int db, int wal, int data, const char *lower, const char *head)
{
	static unsigned count;
	struct store *store = calloc(1, sizeof *store);
	bool was_closed;
	struct stat log;
	int r;

	*made = store;
	if (!store)
		return -ENOMEM;
	store->vfs.db = db;
	store->vfs.wal = wal;
	snprintf(store->head, sizeof store->head, "%s", head ? head : "main");
	snprintf(store->vfs_name, sizeof store->vfs_name, "state%u", count++);
	if (data >= 0 && !(store->data = data_new(data))) {
		close(data);
		return refuse(store, -ENOMEM, "no memory");
	}
	if ((r = vfs_lock(db)))
		return refuse(store, r, r == -EBUSY ? "in use by another run" : strerror(-r));
	if ((r = admit(store, db, wal, lower != NULL)))
		return r;
	if (vfs_register(&store->vfs, store->vfs_name, db, wal)) {
		snprintf(store->problem, sizeof store->problem, "SQLite does not start");
		return -EIO;
	}
	was_closed = !fstat(wal, &log) && !log.st_size;
	if ((r = open_database(store, lower)))
		return r;
	if (!was_closed)
		recover(store);
	return 0;
}

bool store_is_applying(struct store *store)
{
	return number(store, "select 1 from about where key = 'applying'", 0);
}

static void release(struct store *store)
{
	for (size_t i = 0; i < STATEMENTS; i++)
		sqlite3_finalize(store->statements[i]);
	sqlite3_close(store->db);
	if (store->vfs.base.zName)
		sqlite3_vfs_unregister(&store->vfs.base);
	close(store->vfs.db);
	close(store->vfs.wal);
	data_free(store->data);
	free(store->chain);
	free(store->inodes);
	free(store);
}

int store_close(struct store *store)
{
	int r = 0, tidied = 0;

	if (!store)
		return 0;
	if (store->db && store->depth) {
		r = store_commit(store, true);
		tidied = store->untidy ? 0 : store_tidy(store);
		if (!r && !tidied && store->data && data_has_garbage(store->data))
			tidied = store_sweep(store);
		if (!r && !tidied)
			r = store_exec(store, "pragma wal_checkpoint(truncate)");
	}
	release(store);
	return r ? r : tidied;
}
