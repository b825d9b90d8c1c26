/* Rows of blocks as the table has them. A row whose blocks lie in data files has a text in place of
 * bytes. */
#include "rows.h"
#include "state.h"
#include <stdio.h>
#include <string.h>
#include <errno.h>

static bool number_at(const char **text, uint64_t *number)
{
	const char *at = *text;

	for (*number = 0; *at >= '0' && *at <= '9' && *number < SLOT_MOST; at++)
		*number = *number * 10 + (uint64_t)(*at - '0');
	if (at == *text || *number >= SLOT_MOST)
		return false;
	*text = at;
	return true;
}

/* The next part of the text: from one slot to another. */
static bool part_at(const char **text, bool first, uint64_t *from, uint64_t *to)
{
	if (!first && *(*text)++ != ',')
		return false;
	if (!number_at(text, from))
		return false;
	*to = *from;
	if (**text == '-') {
		(*text)++;
		if (!number_at(text, to))
			return false;
	}
	return *to >= *from;
}

static bool parse_slots(const char *text, struct row *row)
{
	uint64_t from = 1, to = 0;
	const char *at = text;

	for (unsigned i = 0; i < BLOCKS; i++) {
		row->slot[i] = SLOT_NONE;
		if (!block_is_stored(row, i))
			continue;
		if (from > to && !part_at(&at, at == text, &from, &to))
			return false;
		row->slot[i] = from++;
	}
	return from > to && !*at;
}

bool row_of(const struct store *store, sqlite3_stmt *statement, int column, struct row *row)
{
	int64_t held = sqlite3_column_int64(statement, column), zeros = sqlite3_column_int64(statement, column + 1);
	const char *text;

	row->held = (uint16_t)held;
	row->zeros = (uint16_t)zeros;
	row->outside = sqlite3_column_type(statement, column + 2) == SQLITE_TEXT;
	if (held != row->held || zeros != row->zeros || zeros & ~held)
		return false;
	if (row->outside) {
		text = (const char *)sqlite3_column_text(statement, column + 2);
		return store->data && text && parse_slots(text, row);
	}
	row->bytes = sqlite3_column_blob(statement, column + 2);
	row->size = (size_t)sqlite3_column_bytes(statement, column + 2);
	return row->size <= STORE_CHUNK;
}

bool block_is_zero(const uint8_t *block)
{
	return !block[0] && !memcmp(block, block + 1, STORE_BLOCK - 1);
}

static int bind_slots(sqlite3_stmt *statement, int at, const struct row *row)
{
	char text[BLOCKS * 24] = "";
	uint64_t first = SLOT_NONE, last = SLOT_NONE;
	size_t length = 0;

	for (unsigned i = 0; i <= BLOCKS; i++) {
		uint64_t slot = i < BLOCKS && block_is_stored(row, i) ? row->slot[i] : SLOT_NONE;

		if (i < BLOCKS && slot == SLOT_NONE)
			continue;
		if (first != SLOT_NONE && slot == last + 1) {
			last = slot;
			continue;
		}
		if (first != SLOT_NONE)
			length += (size_t)snprintf(text + length, sizeof text - length,
			    first == last ? "%s%llu" : "%s%llu-%llu", length ? "," : "", (unsigned long long)first,
			    (unsigned long long)last);
		first = last = slot;
	}
	return sqlite3_bind_text(statement, at, text, (int)length, SQLITE_TRANSIENT);
}

int write_row(struct store *store, uint64_t ino, uint64_t chunk, const struct row *row)
{
	sqlite3_stmt *write = store_statement(store, WRITE);

	if (!write)
		return -EIO;
	sqlite3_bind_int64(write, 1, (int64_t)ino);
	sqlite3_bind_int64(write, 2, (int64_t)chunk);
	sqlite3_bind_int64(write, 3, store_layer(store));
	sqlite3_bind_int64(write, 4, row->held);
	sqlite3_bind_int64(write, 5, row->zeros);
	if (row->outside)
		bind_slots(write, 6, row);
	else
		sqlite3_bind_blob(write, 6, row->bytes, (int)row->size, SQLITE_STATIC);
	return store_run(store, write);
}
