/* The hash chain. */
#include <blake3.h>
#include <string.h>
#include "witness.h"

void chain_start(const struct start *start, uint8_t hash[HASH])
{
	blake3_hasher h;

	blake3_hasher_init(&h);
	blake3_hasher_update(&h, start, sizeof *start);
	blake3_hasher_finalize(&h, hash, HASH);
}

void chain_block(uint8_t hash[HASH], const struct start *start, const struct block *block, const void *records,
    struct statement *statement)
{
	blake3_hasher h;

	blake3_hasher_init(&h);
	blake3_hasher_update(&h, hash, HASH);
	blake3_hasher_update(&h, block, sizeof *block);
	blake3_hasher_update(&h, records, block->size);
	blake3_hasher_finalize(&h, hash, HASH);
	memset(statement, 0, sizeof *statement);
	memcpy(statement->magic, "lind witness 1", 14);
	memcpy(statement->id, start->id, sizeof start->id);
	statement->blocks = block->number + 1;
	statement->records = block->first + block->count;
	statement->last = block->last;
	memcpy(statement->hash, hash, HASH);
}
