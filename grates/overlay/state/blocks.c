/*
 * Bytes of files in a state: rows of up to sixteen blocks. A row has the blocks that its layer
 * knows of; of the others, layers below may know, as far as no layer in between has cut the file
 * shorter (`base`).
 */
#include "blocks.h"
#include "outside.h"
#include "rows.h"
#include "state.h"
#include <errno.h>
#include <string.h>

/* The blocks of `wanted` that the row has go to their places; returns which those are. */
static uint16_t unpack(const struct row *row, uint16_t wanted, uint8_t *bytes)
{
	size_t from = 0;

	for (unsigned i = 0; i < BLOCKS; i++) {
		uint16_t bit = (uint16_t)(1u << i);
		bool stored = row->held & ~row->zeros & bit;
		size_t left = stored && from < row->size ? row->size - from : 0,
		       length = left < STORE_BLOCK ? left : STORE_BLOCK;

		if (row->held & wanted & bit) {
			if (length)
				memcpy(bytes + i * STORE_BLOCK, row->bytes + from, length);
			memset(bytes + i * STORE_BLOCK + length, 0, STORE_BLOCK - length);
		}
		if (stored)
			from += STORE_BLOCK;
	}
	return row->held & wanted;
}

/* Makes a row of the blocks `row->held` of `bytes`, packed to `to`. */
static void pack(struct row *row, const uint8_t *bytes, uint8_t *to)
{
	row->zeros = 0;
	row->bytes = to;
	row->size = 0;
	for (unsigned i = 0; i < BLOCKS; i++) {
		const uint8_t *block = bytes + i * STORE_BLOCK;
		uint16_t bit = (uint16_t)(1u << i);

		if (!(row->held & bit))
			continue;
		if (block_is_zero(block)) {
			row->zeros |= bit;
			continue;
		}
		memcpy(to + row->size, block, STORE_BLOCK);
		row->size += STORE_BLOCK;
	}
	while (row->size && !to[row->size - 1])
		row->size--;
}

/* The blocks of a chunk that begin before `end`. */
static uint16_t before(uint64_t chunk, int64_t end)
{
	uint64_t start = chunk * STORE_CHUNK, blocks;

	if (end <= 0 || (uint64_t)end <= start)
		return 0;
	blocks = ((uint64_t)end - start + STORE_BLOCK - 1) / STORE_BLOCK;
	return blocks >= BLOCKS ? 0xffff : (uint16_t)((1u << blocks) - 1);
}

/* How much of a file shows through the layers above `layer`: goes on with the rows of `bases`,
 * which has the next one ready. */
static int64_t shown(const struct store *store, sqlite3_stmt *bases, int64_t layer, int64_t end, int *code)
{
	while (*code == SQLITE_ROW && sqlite3_column_int64(bases, 0) > layer) {
		int64_t base = sqlite3_column_int64(bases, 1);

		if (store_sees(store, sqlite3_column_int64(bases, 0)) && base < end)
			end = base;
		*code = sqlite3_step(bases);
	}
	return end;
}

/* As `unpack`, wherever the blocks lie; or an error. */
static int take(struct store *store, uint64_t ino, const struct row *row, uint16_t wanted, uint8_t *bytes)
{
	return row->outside ? outside_read(store, ino, row, wanted, bytes) : unpack(row, wanted, bytes);
}

int store_read(struct store *store, uint64_t ino, uint64_t chunk, uint8_t *bytes)
{
	sqlite3_stmt *rows = store_statement(store, READ),
		     *bases = store->depth > 1 ? store_statement(store, BASES) : NULL;
	int code, bases_code = SQLITE_DONE, got = 0;
	int64_t end = INT64_MAX;
	uint16_t found = 0;
	struct row row;

	if (!rows || (store->depth > 1 && !bases))
		return -EIO;
	sqlite3_bind_int64(rows, 1, (int64_t)ino);
	sqlite3_bind_int64(rows, 2, (int64_t)chunk);
	if (bases) {
		sqlite3_bind_int64(bases, 1, (int64_t)ino);
		bases_code = sqlite3_step(bases);
	}
	while (found != 0xffff && (code = sqlite3_step(rows)) == SQLITE_ROW) {
		int64_t layer = sqlite3_column_int64(rows, 0);

		if (!store_sees(store, layer))
			continue;
		if (bases)
			end = shown(store, bases, layer, end, &bases_code);
		if (!row_of(store, rows, 1, &row)) {
			code = SQLITE_CORRUPT;
			break;
		}
		if ((got = take(store, ino, &row, before(chunk, end) & (uint16_t)~found, bytes)) < 0)
			break;
		found |= (uint16_t)got;
	}
	if (found == 0xffff)
		code = SQLITE_DONE;
	if (code == SQLITE_DONE && bases_code != SQLITE_DONE && bases_code != SQLITE_ROW)
		code = bases_code;
	if (got < 0)
		code = got;
	else if (code != SQLITE_DONE)
		code = store_fail(store, code);
	sqlite3_reset(rows);
	sqlite3_reset(bases);
	return code == SQLITE_DONE ? found : code;
}

int64_t store_next_chunk(struct store *store, uint64_t ino, uint64_t chunk)
{
	sqlite3_stmt *row = store_statement(store, NEXT_CHUNK);
	int64_t next = INT64_MAX;

	if (!row)
		return -EIO;
	sqlite3_bind_int64(row, 1, (int64_t)ino);
	sqlite3_bind_int64(row, 2, (int64_t)chunk);
	if (sqlite3_step(row) != SQLITE_ROW)
		next = store_fail(store, sqlite3_errcode(store->db));
	else if (sqlite3_column_type(row, 0) != SQLITE_NULL)
		next = sqlite3_column_int64(row, 0);
	sqlite3_reset(row);
	return next;
}

/* The row that this layer has of a chunk; its bytes, if they are in it, go to `bytes`. 1, or 0
 * if it has none. */
static int read_own(struct store *store, uint64_t ino, uint64_t chunk, struct row *row, uint16_t except, uint8_t *bytes)
{
	sqlite3_stmt *own = store_statement(store, READ_OWN);
	int code;

	if (!own)
		return -EIO;
	sqlite3_bind_int64(own, 1, (int64_t)ino);
	sqlite3_bind_int64(own, 2, (int64_t)chunk);
	sqlite3_bind_int64(own, 3, store_layer(store));
	code = sqlite3_step(own);
	if (code == SQLITE_ROW && !row_of(store, own, 0, row))
		code = SQLITE_CORRUPT;
	if (code == SQLITE_ROW && !row->outside)
		unpack(row, (uint16_t)~except, bytes);
	if (code != SQLITE_ROW && code != SQLITE_DONE) {
		code = store_fail(store, code);
		sqlite3_reset(own);
		return code;
	}
	sqlite3_reset(own);
	return code == SQLITE_ROW;
}

/* Writes one with its bytes in it: blocks `row->held`. */
static int write_inside(struct store *store, uint64_t ino, uint64_t chunk, struct row *row, const uint8_t *bytes)
{
	static uint8_t packed[STORE_CHUNK];

	row->outside = false;
	pack(row, bytes, packed);
	return write_row(store, ino, chunk, row);
}

/* Whether the file has more than one chunk. A first chunk that was written when it had only one
 * stays where it is until it is written again. */
static int is_large(struct store *store, uint64_t ino, uint64_t chunk)
{
	sqlite3_stmt *size;
	int code;

	if (chunk || !store->data)
		return store->data != NULL;
	if (!(size = store_statement(store, SIZE)))
		return -EIO;
	sqlite3_bind_int64(size, 1, (int64_t)ino);
	sqlite3_bind_int64(size, 2, store_layer(store));
	code = sqlite3_step(size);
	if (code != SQLITE_ROW && code != SQLITE_DONE)
		return store_fail(store, code);
	code = code == SQLITE_ROW && sqlite3_column_int64(size, 0) > (int64_t)STORE_CHUNK;
	sqlite3_reset(size);
	return code;
}

int store_write(struct store *store, uint64_t ino, uint64_t chunk, uint16_t mask, const uint8_t *bytes)
{
	static uint8_t merged[STORE_CHUNK];
	struct row row = { 0 };
	int r = mask ? store_begin(store) : 0, outside = 0;

	if (r || !mask)
		return r;
	if ((mask != 0xffff || store->data) && (r = read_own(store, ino, chunk, &row, mask, merged)) < 0)
		return r;
	if (row.outside || (outside = is_large(store, ino, chunk)) < 0)
		return row.outside ? outside_write(store, ino, chunk, &row, mask, bytes) : outside;
	if (!(row.held & ~mask)) {
		row.held = mask;
	} else {
		for (unsigned i = 0; i < BLOCKS; i++)
			if (mask & 1u << i)
				memcpy(merged + i * STORE_BLOCK, bytes + i * STORE_BLOCK, STORE_BLOCK);
		row.held |= mask;
		bytes = merged;
	}
	return outside ? outside_write(store, ino, chunk, &row, row.held, bytes)
		       : write_inside(store, ino, chunk, &row, bytes);
}

/* The chunk that `size` lies in: its blocks behind are dropped. */
static int cut_row(struct store *store, uint64_t ino, uint64_t chunk, int64_t size)
{
	static uint8_t kept[STORE_CHUNK];
	struct row row = { 0 };
	sqlite3_stmt *drop;
	int r = read_own(store, ino, chunk, &row, 0, kept);
	uint16_t left = row.held & before(chunk, size);

	if (r <= 0 || left == row.held)
		return r < 0 ? r : 0;
	if (row.outside && (r = outside_give(store, ino, &row, (uint16_t)~left)))
		return r;
	row.held = left;
	row.zeros &= left;
	if (left)
		return row.outside ? write_row(store, ino, chunk, &row) : write_inside(store, ino, chunk, &row, kept);
	if (!(drop = store_statement(store, DROP_BLOCKS)))
		return -EIO;
	sqlite3_bind_int64(drop, 1, (int64_t)ino);
	sqlite3_bind_int64(drop, 2, (int64_t)chunk);
	sqlite3_bind_int64(drop, 3, store_layer(store));
	return store_run(store, drop);
}

int blocks_cut(struct store *store, uint64_t ino, int64_t size)
{
	uint64_t first = ((uint64_t)size + STORE_CHUNK - 1) / STORE_CHUNK;
	sqlite3_stmt *cut;
	int r = store_begin(store);

	if (r || (r = outside_cut(store, ino, first)))
		return r;
	if (!(cut = store_statement(store, CUT)))
		return -EIO;
	sqlite3_bind_int64(cut, 1, (int64_t)ino);
	sqlite3_bind_int64(cut, 2, store_layer(store));
	sqlite3_bind_int64(cut, 3, (int64_t)first);
	r = store_run(store, cut);
	return r ? r : cut_row(store, ino, (uint64_t)size / STORE_CHUNK, size);
}
