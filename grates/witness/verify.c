/* Checks a log against its hashes, its signatures and its head. Runs in a cage as in a native program. */
#include <ctype.h>
#include <errno.h>
#include <monocypher-ed25519.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "show.h"
#include "witness.h"

struct state {
	const char *name;
	FILE *f;
	struct start start;
	uint8_t hash[HASH];
	uint64_t blocks, records;
	bool last;
	uint8_t *bytes;
};

static int wrong(const struct state *s, const char *what)
{
	printf("%s: block %llu: %s\n", s->name, (unsigned long long)s->blocks, what);
	return 1;
}

/* Whether records fill a block exactly. */
static bool well_formed(const struct block *block, const uint8_t *at)
{
	size_t left = block->size;
	uint32_t count = 0;

	for (; left; count++) {
		struct record r;
		size_t used;

		if (left < sizeof r)
			return false;
		memcpy(&r, at, sizeof r);
		if (r.size > left || r.size < sizeof r || r.size % 8 || r.arguments > 6)
			return false;
		for (used = sizeof r + r.arguments * 8u; used < r.size;) {
			struct piece p;

			if (r.size - used < sizeof p)
				return false;
			memcpy(&p, at + used, sizeof p);
			used += sizeof p + (p.kept + 7u) / 8 * 8;
		}
		if (used != r.size)
			return false;
		at += r.size;
		left -= r.size;
	}
	return count == block->count;
}

/* -1: there is no more. */
static int next_block(struct state *s, bool show)
{
	struct statement statement;
	struct block block;
	struct seal seal;
	size_t n = fread(&block, 1, sizeof block, s->f);

	if (!n && !ferror(s->f))
		return -1;
	if (n < sizeof block)
		return wrong(s, "cut off");
	if (s->last)
		return wrong(s, "stands behind the end");
	if (memcmp(block.magic, "BLCK", 4) || block.size > BLOCK_SIZE || block.last > 1)
		return wrong(s, "is no block");
	if (block.number != s->blocks)
		return wrong(s, "has another number: blocks are missing or not in order");
	if (block.first != s->records)
		return wrong(s, "begins with another record: records are missing");
	if (fread(s->bytes, 1, block.size, s->f) < block.size || fread(&seal, 1, sizeof seal, s->f) < sizeof seal)
		return wrong(s, "cut off");
	chain_block(s->hash, &s->start, &block, s->bytes, &statement);
	if (memcmp(seal.hash, s->hash, HASH))
		return wrong(s, "was changed: its hash differs");
	if (crypto_ed25519_check(seal.signature, s->start.key, (const uint8_t *)&statement, sizeof statement))
		return wrong(s, "its signature is not by the key");
	if (!well_formed(&block, s->bytes))
		return wrong(s, "its records are none");
	if (show)
		show_records(s->bytes, block.size, block.first);
	s->blocks++;
	s->records += block.count;
	s->last = block.last;
	return 0;
}

static bool read_hex(const char *text, uint8_t *to, size_t size)
{
	if (strlen(text) != 2 * size)
		return false;
	for (size_t i = 0; i < size; i++) {
		char pair[3] = { text[2 * i], text[2 * i + 1], 0 };

		if (!isxdigit((unsigned char)pair[0]) || !isxdigit((unsigned char)pair[1]))
			return false;
		to[i] = (uint8_t)strtoul(pair, NULL, 16);
	}
	return true;
}

/* The log must be as long as its head says; the head may be one block behind, when the grate was killed between the two. */
static int check_head(const struct state *s, const char *name)
{
	struct head heads[2] = { 0 }, *best = NULL;
	FILE *f = fopen(name, "r");

	if (!f) {
		printf("%s: %s\n", name, strerror(errno));
		return 1;
	}
	if (fread(heads, 1, sizeof heads, f) < sizeof *heads && s->blocks) {
		printf("%s: cut off\n", name);
		fclose(f);
		return 1;
	}
	fclose(f);
	for (int i = 0; i < 2; i++)
		if (!crypto_ed25519_check(heads[i].signature, s->start.key, (const uint8_t *)&heads[i].statement, sizeof heads[i].statement) &&
		    !memcmp(heads[i].statement.id, s->start.id, sizeof s->start.id) && (!best || heads[i].statement.blocks > best->statement.blocks))
			best = &heads[i];
	if (!best && !s->blocks)
		return 0;
	if (!best) {
		printf("%s: has no signature of this log's key\n", name);
		return 1;
	}
	if (best->statement.blocks > s->blocks) {
		printf("%s: cut off: the head says %llu records, and there are %llu\n", s->name, (unsigned long long)best->statement.records,
			(unsigned long long)s->records);
		return 1;
	}
	if (best->statement.blocks == s->blocks ? memcmp(best->statement.hash, s->hash, HASH) : best->statement.blocks + 1 < s->blocks) {
		printf("%s: is not the head of this log\n", name);
		return 1;
	}
	return 0;
}

static int check(struct state *s, const char *head, const char *key, bool show)
{
	uint8_t wanted[32];
	int r;

	if (fread(&s->start, 1, sizeof s->start, s->f) < sizeof s->start || memcmp(s->start.magic, "LINDWIT1", 8)) {
		printf("%s: is no log\n", s->name);
		return 1;
	}
	if (key && !read_hex(key, wanted, sizeof wanted)) {
		printf("%s: a key has 64 hexadecimal digits\n", key);
		return 3;
	}
	if (key && memcmp(wanted, s->start.key, sizeof wanted)) {
		printf("%s: is signed with another key\n", s->name);
		return 1;
	}
	chain_start(&s->start, s->hash);
	while (!(r = next_block(s, show)))
		;
	if (r > 0 || (r = head ? check_head(s, head) : 0))
		return r;
	printf("%s: %llu records in %llu blocks, %s%s\n", s->name, (unsigned long long)s->records, (unsigned long long)s->blocks,
		s->last ? "whole" : "unchanged as far as it goes, but it does not end: the grate runs, was killed, or the end was cut off",
		key ? "" : "; signed by the key in the log, which nobody vouches for without --public");
	return s->last ? 0 : 2;
}

int verify(const char *log, const char *head, const char *key, bool show)
{
	struct state s = { .name = log, .f = fopen(log, "r"), .bytes = malloc(BLOCK_SIZE) };
	int r;

	if (!s.f || !s.bytes) {
		printf("%s: %s\n", log, strerror(errno));
		return 3;
	}
	r = check(&s, head, key, show);
	fclose(s.f);
	free(s.bytes);
	return r;
}
