/*
 * Rows whose blocks lie in data files, in a state that is a directory. In place of bytes such a row
 * has a text: the slots of its blocks in turn, "160-175" or "5,9,12-14". So anybody can see with
 * sqlite3 what lies where, and a row says by its type which kind it is.
 *
 * A file that fits into one row keeps its bytes there: a data file for each of ten thousand small
 * files would be slower, and take more room.
 */
#include "outside.h"
#include "state.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Reports a mistake in a data file, or in the rows of the state about it. */
static int blame(struct store *store, uint64_t ino, int error)
{
	unsigned long long number = ino;

	switch (-error) {
	case ENOMEM:
		return store_blame(store, error, "no memory");
	case ENOSPC:
	case EDQUOT:
	case EFBIG:
		return store_blame(store, -ENOSPC, "%s", sqlite3_errstr(SQLITE_FULL));
	case ENODATA:
		return store_blame(
		    store, -EIO, "data/%llu is too short: the state names a block beyond its end", number);
	case EMLINK:
		return store_blame(store, -EIO, "data/%llu is not a regular file with one name", number);
	default:
		return store_blame(store, -EIO, "data/%llu: %s", number, strerror(-error));
	}
}

/* How many blocks from this one on lie one after the other, of those in the mask. */
static unsigned run_of(const struct row *row, uint16_t mask, unsigned i)
{
	unsigned length = 1;

	while (i + length < BLOCKS && mask & 1u << (i + length) && row->slot[i + length] == row->slot[i] + length)
		length++;
	return length;
}

int outside_read(struct store *store, uint64_t ino, const struct row *row, uint16_t wanted, uint8_t *bytes)
{
	uint16_t stored = row->held & (uint16_t)~row->zeros & wanted;

	for (unsigned i = 0, length; i < BLOCKS; i += length) {
		uint8_t *to = bytes + i * STORE_BLOCK;
		int r;

		length = 1;
		if (row->zeros & wanted & 1u << i)
			memset(to, 0, STORE_BLOCK);
		if (!(stored & 1u << i))
			continue;
		length = run_of(row, stored, i);
		if ((r = data_read(store->data, ino, row->slot[i], length, to)))
			return blame(store, ino, r);
	}
	return row->held & wanted;
}

static int tell_row(struct data_file *file, uint64_t chunk, const struct row *row)
{
	int r = 0;

	for (unsigned i = 0; !r && i < BLOCKS; i++)
		if (row->slot[i] != SLOT_NONE)
			r = data_holds(
			    file, chunk < UINT64_MAX / BLOCKS ? chunk * BLOCKS + i : UINT64_MAX, row->slot[i]);
	return r;
}

/* Loads the slots that rows of all layers name; also of unseen layers, which have their blocks
 * in the same data file. */
static int load(struct store *store, uint64_t ino, struct data_file *file)
{
	sqlite3_stmt *rows = store_statement(store, SLOTS);
	int code, r = 0;

	if (!rows)
		return -EIO;
	sqlite3_bind_int64(rows, 1, (int64_t)ino);
	while (!r && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		struct row row;

		if (!row_of(store, rows, 1, &row))
			r = store_fail(store, SQLITE_CORRUPT);
		else if (row.outside && (r = tell_row(file, (uint64_t)sqlite3_column_int64(rows, 0), &row)))
			r = blame(store, ino, r);
	}
	if (!r && code != SQLITE_DONE)
		r = store_fail(store, code);
	sqlite3_reset(rows);
	return r;
}

static int file_of(struct store *store, uint64_t ino, struct data_file **file)
{
	bool is_new = false;
	int r;

	if (!(*file = data_file(store->data, ino, &is_new)))
		return store_fail(store, SQLITE_NOMEM);
	if (!is_new || !(r = load(store, ino, *file)))
		return 0;
	data_forget(store->data, *file);
	return r;
}

int outside_give(struct store *store, uint64_t ino, const struct row *row, uint16_t mask)
{
	struct data_file *file;
	int r = file_of(store, ino, &file);

	for (unsigned i = 0; !r && i < BLOCKS; i++)
		if (row->outside && block_is_stored(row, i) && mask & 1u << i &&
		    (r = data_give(store->data, file, row->slot[i])))
			r = blame(store, ino, r);
	return r;
}

/* Says where the blocks of `mask` go. */
static int place(
    struct store *store, struct data_file *file, uint64_t chunk, struct row *row, uint16_t mask, const uint8_t *bytes)
{
	int r = 0;

	for (unsigned i = 0; !r && i < BLOCKS; i++) {
		uint16_t bit = (uint16_t)(1u << i);

		if (!(mask & bit))
			continue;
		row->held |= bit;
		row->zeros &= (uint16_t)~bit;
		if (!block_is_zero(bytes + i * STORE_BLOCK)) {
			r = data_take(store->data, file, chunk * BLOCKS + i, &row->slot[i]);
			continue;
		}
		row->zeros |= bit;
		if (row->slot[i] != SLOT_NONE)
			r = data_give(store->data, file, row->slot[i]);
		row->slot[i] = SLOT_NONE;
	}
	return r;
}

int outside_write(
    struct store *store, uint64_t ino, uint64_t chunk, struct row *row, uint16_t mask, const uint8_t *bytes)
{
	struct data_file *file;
	int r = file_of(store, ino, &file);

	if (r)
		return r;
	if (!row->outside)
		for (unsigned i = 0; i < BLOCKS; i++)
			row->slot[i] = SLOT_NONE;
	row->outside = true;
	r = place(store, file, chunk, row, mask, bytes);
	mask &= (uint16_t)~row->zeros;
	for (unsigned i = 0, length; !r && i < BLOCKS; i += length) {
		length = mask & 1u << i ? run_of(row, mask, i) : 1;
		if (mask & 1u << i)
			r = data_write(store->data, file, row->slot[i], length, bytes + i * STORE_BLOCK);
	}
	return r ? blame(store, ino, r) : write_row(store, ino, chunk, row);
}

int outside_cut(struct store *store, uint64_t ino, uint64_t first)
{
	sqlite3_stmt *rows = store->data ? store_statement(store, OWN_SLOTS) : NULL;
	int code, r = 0;

	if (!rows)
		return store->data ? -EIO : 0;
	sqlite3_bind_int64(rows, 1, (int64_t)ino);
	sqlite3_bind_int64(rows, 2, store_layer(store));
	sqlite3_bind_int64(rows, 3, (int64_t)first);
	while (!r && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		struct row row;

		if (!row_of(store, rows, 0, &row))
			r = store_fail(store, SQLITE_CORRUPT);
		else if (row.outside)
			r = outside_give(store, ino, &row, row.held);
	}
	if (!r && code != SQLITE_DONE)
		r = store_fail(store, code);
	sqlite3_reset(rows);
	return r;
}

static int keep_only_named(struct store *store, uint64_t ino)
{
	bool is_new;
	struct data_file *file = data_file(store->data, ino, &is_new);
	int r;

	if (file && !is_new) {
		data_forget(store->data, file);
		file = data_file(store->data, ino, &is_new);
	}
	if (!file)
		return -ENOMEM;
	if (!(r = load(store, ino, file)))
		return data_keep_only(store->data, file);
	data_forget(store->data, file);
	return r;
}

int store_sweep(struct store *store)
{
	uint64_t *inos = NULL;
	size_t count = 0;
	int r = store->data ? data_list(store->data, &inos, &count) : 0;

	/* Rows that are not on the disk yet must be: those that come back otherwise name what goes
	 * here. */
	if (!r && count && fdatasync(store->vfs.wal))
		r = -errno;
	for (size_t i = 0; i < count && !r; i++)
		r = keep_only_named(store, inos[i]);
	free(inos);
	return r;
}
