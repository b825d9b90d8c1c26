/*
 * The record of an unfinished apply in a state: in `about` under `applying` which step it is at,
 * and in a table of that name each change. Both are gone at the end.
 */
#include "apply.h"
#include "../state/state.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <lind/options.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static const char table[] =
    "create table applying(	-- what `lind-boot apply` has begun, and the next one finishes\n"
    "	number integer primary key,\n"
    "	deed integer not null,	-- 1: a new file, written already; 2: it moves; 3: a further name of the file `same`; 0: another\n"
    "	kind text not null, type integer not null,	-- A made, M changed, D removed, R renamed; as in st_mode\n"
    "	path blob not null, source blob, same blob,	-- where it is to be, where it was\n"
    "	ino integer, dir integer not null, name blob not null,	-- the rows that it comes from\n"
    "	was_ino integer, was_type integer, was_size integer, was_mtime integer, was_ctime integer,	-- what was at source\n"
    "	over_ino integer, over_type integer, over_size integer, over_mtime integer, over_ctime integer,	-- what it takes the place of\n"
    "	stays integer)	-- 1: it is there then, but not all that is in it, or not all its names\n";
static const char insert[] =
    "insert into applying values(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?21)";
static const char fetch[] = "select * from applying order by number";

/* A statement that still looks at a row keeps tables from being removed. */
static void settle(struct store *store)
{
	for (sqlite3_stmt *statement = NULL; (statement = sqlite3_next_stmt(store->db, statement));)
		sqlite3_reset(statement);
}

static int say(struct apply *apply, const char *step)
{
	struct stat st;
	char *sql;
	int r;

	if (!below_look("", &st))
		return -errno;
	sql = sqlite3_mprintf("insert or replace into about values('applying', '%s %s %llu %d')", step, apply->random,
	    (unsigned long long)st.st_ino, apply->all && !apply->failed);
	r = store_begin(apply->store);
	r = r ? r : sql ? store_exec(apply->store, sql) : -ENOMEM;
	sqlite3_free(sql);
	return r;
}

int journal_begin(struct apply *apply)
{
	uint64_t random;
	int r;

	if (getrandom(&random, sizeof random, 0) != sizeof random)
		return -EIO;
	snprintf(apply->random, sizeof apply->random, "%016llx", (unsigned long long)random);
	r = say(apply, "writing");
	return r ? r : store_commit(apply->store, true);
}

static void bind_text(sqlite3_stmt *row, int at, const char *text)
{
	if (text)
		sqlite3_bind_blob(row, at, text, (int)strlen(text), SQLITE_STATIC);
}

static void bind_seen(sqlite3_stmt *row, int at, const struct verb_seen *seen)
{
	const int64_t numbers[] = { (int64_t)seen->ino, seen->type, seen->size, seen->mtime, seen->ctime };

	for (int i = 0; i < 5; i++)
		sqlite3_bind_int64(row, at + i, numbers[i]);
}

static int put(struct store *store, sqlite3_stmt *row, const struct apply *apply, size_t i)
{
	const struct verb_change *change = &apply->list->changes[i];

	sqlite3_bind_int64(row, 1, (int64_t)apply->work[i].number);
	sqlite3_bind_int64(row, 2, apply->work[i].deed);
	sqlite3_bind_text(row, 3, &change->kind, 1, SQLITE_STATIC);
	sqlite3_bind_int64(row, 4, change->type);
	bind_text(row, 5, change->path);
	bind_text(row, 6, change->from);
	bind_text(row, 7, apply->work[i].same);
	if (change->node)
		sqlite3_bind_int64(row, 8, (int64_t)change->node->row.ino);
	sqlite3_bind_int64(row, 9, (int64_t)change->dir);
	bind_text(row, 10, change->name);
	bind_seen(row, 11, &change->was);
	bind_seen(row, 16, &change->over);
	sqlite3_bind_int(row, 21, apply->work[i].unfinished);
	return store_run(store, row);
}

int journal_plan(struct apply *apply)
{
	struct store *store = apply->store;
	sqlite3_stmt *row;
	int r = store_begin(store), code;

	settle(store);
	r = r ? r : store_exec(store, "drop table if exists applying");
	r = r ? r : store_exec(store, table);
	if (r)
		return r;
	if ((code = sqlite3_prepare_v2(store->db, insert, -1, &row, NULL)))
		return store_fail(store, code);
	for (size_t i = 0; i < apply->list->changes_count && !r; i++)
		r = apply->work[i].failed ? 0 : put(store, row, apply, i);
	sqlite3_finalize(row);
	r = r ? r : say(apply, "placing");
	return r ? r : store_commit(store, true);
}

int journal_clean(struct apply *apply)
{
	int r = say(apply, "cleaning");

	settle(apply->store);
	return r ? r : store_exec(apply->store, "drop table if exists applying");
}

int journal_end(struct apply *apply)
{
	int r = store_begin(apply->store);

	settle(apply->store);
	r = r ? r : store_exec(apply->store, "delete from about where key = 'applying'; drop table if exists applying");
	return r ? r : store_commit(apply->store, true);
}

static char *text_at(sqlite3_stmt *row, int column)
{
	const char *text = sqlite3_column_blob(row, column);

	return text ? strndup(text, (size_t)sqlite3_column_bytes(row, column)) : NULL;
}

static struct verb_seen seen_at(sqlite3_stmt *row, int column)
{
	return (struct verb_seen){ (uint64_t)sqlite3_column_int64(row, column), sqlite3_column_int64(row, column + 1),
		sqlite3_column_int64(row, column + 2), sqlite3_column_int64(row, column + 3),
		sqlite3_column_int64(row, column + 4) };
}

static bool is_sound(const struct verb_change *change, const struct work *work)
{
	bool moves = change->kind == 'D' || change->kind == 'R';

	return strchr("AMDR", change->kind) && change->kind && work->deed < DEEDS && change->path && *change->path &&
	    verb_is_path(change->path) && change->name && verb_is_path(change->name) && *change->name &&
	    !strchr(change->name, '/') && !change->node == (change->kind == 'D') &&
	    (change->from ? *change->from && verb_is_path(change->from) : !moves) &&
	    (work->deed == LINKS ? work->same && *work->same && verb_is_path(work->same) : !work->same) &&
	    (work->deed != MOVES || change->kind == 'R') && (!work->unfinished || change->node) &&
	    !(change->node && (change->node->row.mode & S_IFMT) != change->type) &&
	    !(change->type == S_IFDIR && (work->deed == MADE || work->deed == LINKS));
}

static int get(struct apply *apply, sqlite3_stmt *row, size_t i)
{
	const char *kind = (const char *)sqlite3_column_text(row, 2);
	struct verb_change *change = &apply->list->changes[i];
	struct work *work = &apply->work[i];

	work->number = (size_t)sqlite3_column_int64(row, 0);
	work->deed = (enum deed)sqlite3_column_int(row, 1);
	work->same = text_at(row, 6);
	work->unfinished = sqlite3_column_int(row, 20);
	*change = (struct verb_change){ .kind = kind ? *kind : 0,
		.type = (mode_t)sqlite3_column_int(row, 3),
		.path = text_at(row, 4),
		.from = text_at(row, 5),
		.dir = (uint64_t)sqlite3_column_int64(row, 8),
		.name = text_at(row, 9),
		.was = seen_at(row, 10),
		.over = seen_at(row, 15) };
	if (sqlite3_column_type(row, 7) != SQLITE_NULL)
		change->node = verb_node(apply->list, (uint64_t)sqlite3_column_int64(row, 7));
	return is_sound(change, work) ? 0 : -EIO;
}

/* The rows of the plan. */
static int get_all(struct apply *apply)
{
	struct store *store = apply->store;
	sqlite3_stmt *row;
	int code, r = 0;
	size_t room = 0, count = 0;

	if ((code = sqlite3_prepare_v2(store->db, fetch, -1, &row, NULL)))
		return store_fail(store, code);
	if (sqlite3_column_count(row) != 21)
		r = -EIO;
	while (!r && (code = sqlite3_step(row)) == SQLITE_ROW) {
		if (count == room) {
			room = room ? 2 * room : 64;
			apply->list->changes = realloc(apply->list->changes, room * sizeof *apply->list->changes);
			apply->work = realloc(apply->work, room * sizeof *apply->work);
			if (!apply->list->changes || !apply->work) {
				r = -ENOMEM;
				break;
			}
		}
		apply->work[count] = (struct work){ 0 };
		r = get(apply, row, count++);
	}
	sqlite3_finalize(row);
	apply->list->changes_count = r ? 0 : count;
	return r == -EIO          ? store_fail(store, SQLITE_CORRUPT)
	    : r                   ? r
	    : code == SQLITE_DONE ? 0
				  : store_fail(store, code);
}

/* The line of `about`, of 80 bytes at most; false: there is none. */
static bool line(struct store *store, char text[static 81])
{
	sqlite3_stmt *row;
	bool found = false;

	if (sqlite3_prepare_v2(
		store->db, "select value from about where key = 'applying' and length(value) <= 80", -1, &row, NULL))
		return false;
	if (sqlite3_step(row) == SQLITE_ROW && sqlite3_column_bytes(row, 0) <= 80 && sqlite3_column_text(row, 0)) {
		snprintf(text, 81, "%s", (const char *)sqlite3_column_text(row, 0));
		found = true;
	}
	sqlite3_finalize(row);
	return found;
}

int journal_read(struct apply *apply)
{
	char text[81], step[16];
	unsigned long long ino;
	struct stat st;
	int all, r;

	if (!line(apply->store, text))
		return 0;
	if (sscanf(text, "%15s %16s %llu %d", step, apply->random, &ino, &all) != 4 ||
	    strspn(apply->random, "0123456789abcdef") != 16)
		return store_fail(apply->store, SQLITE_CORRUPT);
	if (!below_look("", &st))
		return -errno;
	if (st.st_ino != ino)
		return -EXDEV;
	if (strcmp(step, "placing"))
		return 1;
	apply->all = all;
	apply->again = true;
	r = verb_load(apply->store, apply->list);
	r = r ? r : get_all(apply);
	if (r)
		return r;
	verb_index(apply->list);
	return 2;
}

bool journal_sweep(const struct apply *apply)
{
	int fd = below_directory("");
	bool whole = true;
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;
	char start[64];

	if (!dir)
		return false;
	snprintf(start, sizeof start, APPLY_TEMPORARY "%s-", apply->random);
	while ((entry = readdir(dir))) {
		int r = strncmp(entry->d_name, start, strlen(start)) ? 0 : apply_remove(entry->d_name);

		if (!r)
			continue;
		lind_log("%s: is not needed, but cannot be removed: %s", entry->d_name, strerror(-r));
		whole = false;
	}
	closedir(dir);
	return whole;
}
