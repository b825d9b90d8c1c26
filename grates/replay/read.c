/*
 * Reading a record. Nothing in it is believed: whoever made it may have written any number. The
 * checks of lind-boot are made again, since the file may have changed meanwhile.
 */
#include <errno.h>
#include <lz4.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "replay.h"

#define HEAD_MAGIC  "lind record 1\n"
#define BLOCKS_MOST 1000000u

struct place {
	struct block block;
	off_t at;
	long next;  /* the next block of the same cage */
};

/* A cage and the first of its blocks. */
struct of_cage {
	uint32_t cage;
	long first;
};

struct log {
	int file;
	const char *name;
	struct place *places;
	size_t count;
	struct of_cage *cages;  /* by their numbers */
	size_t cage_count;
	struct ending *ending;
	char *reason;
};

_Noreturn static void damaged(const struct log *log, off_t at, const char *what)
{
	lind_die("%s: damaged at byte %lld: %s; nothing can be replayed from it", lind_file_name(log->name),
	    (long long)at, what);
}

static bool whole(int file, void *to, size_t length, off_t at)
{
	char *next = to;

	while (length) {
		ssize_t n = pread(file, next, length, at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		next += n;
		at += n;
		length -= (size_t)n;
	}
	return true;
}

static const char *known(const struct block *block)
{
	if (block->magic != BLOCK_MAGIC || block->check != crc32_of(0, block, offsetof(struct block, check)))
		return "no block begins here";
	if (block->raw >= 2 * RECORD_MOST || block->packed >= 2 * RECORD_MOST || block->raw < 1)
		return "a block has an impossible size";
	if (block->kind != BLOCK_CALLS && block->raw != block->packed)
		return "a block has two sizes";
	if (block->kind == BLOCK_CALLS && !block->cage)
		return "a block is of no cage";
	return NULL;
}

static void add_place(struct log *log, const struct block *block, off_t at)
{
	if (!(log->count & (log->count - 1)) &&
	    !(log->places = realloc(log->places, (log->count ? 2 * log->count : 1) * sizeof *log->places)))
		lind_die("out of memory");
	log->places[log->count++] = (struct place){ *block, at, -1 };
}

static int by_cage(const void *one, const void *other)
{
	const struct of_cage *a = one, *b = other;

	if (a->cage != b->cage)
		return a->cage < b->cage ? -1 : 1;
	return a->first < b->first ? -1 : a->first > b->first;
}

/* Every block points to the next one of its cage, and each cage to its first. */
static void chain(struct log *log)
{
	size_t count = 0, cages = 0;

	if (!(log->cages = calloc(log->count + 1, sizeof *log->cages)))
		lind_die("out of memory");
	for (size_t n = 0; n < log->count; n++)
		if (log->places[n].block.kind == BLOCK_CALLS)
			log->cages[count++] = (struct of_cage){ log->places[n].block.cage, (long)n };
	qsort(log->cages, count, sizeof *log->cages, by_cage);
	for (size_t i = 1; i < count; i++)
		if (log->cages[i].cage == log->cages[i - 1].cage)
			log->places[log->cages[i - 1].first].next = log->cages[i].first;
	for (size_t i = 0; i < count; i++)
		if (!cages || log->cages[cages - 1].cage != log->cages[i].cage)
			log->cages[cages++] = log->cages[i];
	log->cage_count = cages;
}

static char *data_of(const struct log *log, const struct place *place)
{
	char *data = malloc(place->block.packed + 1u);

	if (!data)
		lind_die("out of memory");
	if (!whole(log->file, data, place->block.packed, place->at) ||
	    crc32_of(0, data, place->block.packed) != place->block.sum)
		damaged(log, place->at, "the sum of a block is wrong");
	data[place->block.packed] = 0;
	return data;
}

static void read_end(struct log *log, const struct place *place)
{
	char *data = data_of(log, place);

	if (place->block.packed < sizeof *log->ending + 1)
		damaged(log, place->at, "the end is too short");
	free(log->ending);
	log->ending = (struct ending *)(void *)data;
	log->reason = data + sizeof *log->ending;
}

struct log *read_open(const char *value, const char **wrong)
{
	struct log *log = calloc(1, sizeof *log);
	struct {
		char magic[16];
		uint32_t length, sum;
	} head;
	struct block block;
	off_t at, end;
	const char *what;

	*wrong = NULL;
	if (!log || (log->file = lind_open_file(value, NULL, O_RDONLY, 0)) < 0 ||
	    (end = lseek(log->file, 0, SEEK_END)) < 0) {
		*wrong = strerror(errno);
		return NULL;
	}
	log->name = value;
	if (!whole(log->file, &head, sizeof head, 0) || memcmp(head.magic, HEAD_MAGIC, sizeof HEAD_MAGIC)) {
		*wrong = "is no record that lind-boot made";
		return NULL;
	}
	for (at = (off_t)sizeof head + head.length; at < end; at += block.packed) {
		/* The recorder was killed while it wrote this. */
		if (end - at < (off_t)sizeof block)
			break;
		if (!whole(log->file, &block, sizeof block, at))
			damaged(log, at, "cannot be read");
		if ((what = known(&block)))
			damaged(log, at, what);
		at += sizeof block;
		if (end - at < block.packed)
			break;
		if (log->count == BLOCKS_MOST)
			damaged(log, at, "too many blocks");
		add_place(log, &block, at);
		if (block.kind == BLOCK_END)
			read_end(log, &log->places[log->count - 1]);
	}
	chain(log);
	return log;
}

long read_first(const struct log *log, uint32_t cage)
{
	size_t from = 0, to = log->cage_count;

	while (from < to) {
		const size_t middle = from + (to - from) / 2;

		if (log->cages[middle].cage < cage)
			from = middle + 1;
		else
			to = middle;
	}
	return from < log->cage_count && log->cages[from].cage == cage ? log->cages[from].first : -1;
}

static void load(const struct log *log, struct client *cursor)
{
	const struct place *place = &log->places[cursor->next];
	char *packed = data_of(log, place);

	free(cursor->data);
	if (!(cursor->data = malloc(place->block.raw)))
		lind_die("out of memory");
	if (LZ4_decompress_safe(packed, cursor->data, (int)place->block.packed, (int)place->block.raw) !=
	    (int)place->block.raw)
		damaged(log, place->at, "a block cannot be decompressed");
	free(packed);
	cursor->used = place->block.raw;
	cursor->at = 0;
	cursor->next = place->next;
}

const struct record *read_next(struct log *log, struct client *cursor)
{
	const struct record *record;

	if (cursor->at == cursor->used) {
		if (cursor->next < 0)
			return NULL;
		load(log, cursor);
	}
	record = (const struct record *)(const void *)(cursor->data + cursor->at);
	if (cursor->used - cursor->at < sizeof *record || record->bytes > RECORD_MOST ||
	    cursor->used - cursor->at < STRIDE(record))
		lind_die("%s: a record of cage %u is longer than its block; nothing can be replayed from it",
		    lind_file_name(log->name), cursor->cage);
	return record;
}

void read_take(struct client *cursor)
{
	const struct record *record = (const struct record *)(const void *)(cursor->data + cursor->at);

	cursor->at += STRIDE(record);
}

uint32_t read_start(const struct log *log)
{
	for (size_t n = 0; n < log->count; n++)
		if (log->places[n].block.kind == BLOCK_START)
			return log->places[n].block.cage;
	lind_die("%s: has no start of a program", lind_file_name(log->name));
}

void read_copy_starts(const struct log *log)
{
	for (size_t n = 0; n < log->count; n++) {
		const struct block *block = &log->places[n].block;
		char *data;

		if (block->kind != BLOCK_START && block->kind != BLOCK_PROGRAM)
			continue;
		data = data_of(log, &log->places[n]);
		log_block(block->kind, block->cage, block->first, data, block->packed);
		free(data);
	}
}

const struct ending *read_ending(const struct log *log, const char **reason)
{
	*reason = log->ending ? log->reason : "the recorder was killed";
	return log->ending;
}

uint32_t read_cage(const struct log *log, size_t place)
{
	return place < log->cage_count ? log->cages[place].cage : 0;
}
