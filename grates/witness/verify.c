/* Checks a log against its hashes, its signatures and its head. Runs in a cage as in a native
 * program. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lind/options.h>
#include <lind/text.h>
#include <monocypher-ed25519.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "show.h"
#include "witness.h"

/* A head as it was found. */
struct found {
	const char *name;
	int fd, error;   /* where it is open, or why it is not */
	bool copy;   /* made earlier: the log may be longer */
	struct head at[2];
	size_t size;
	bool is_signed[2];
	const struct statement *newest; /* or NULL */
};

struct state {
	const char *name;
	FILE *f;
	struct start start;
	struct found head;
	uint8_t hash[HASH], before[HASH], at_head[HASH];
	uint64_t blocks, records;
	bool last;
	uint8_t *bytes;
};

static int wrong(const struct state *s, const char *what)
{
	printf("%s: block %llu: %s\n", lind_shown(s->name), (unsigned long long)s->blocks, what /* ours */);
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
		return wrong(s, "comes after the end");
	if (memcmp(block.magic, "BLCK", 4) || block.size > BLOCK_SIZE || block.last > 1)
		return wrong(s, "is not a block");
	if (block.number != s->blocks)
		return wrong(s, "has another number: blocks are missing or not in order");
	if (block.first != s->records)
		return wrong(s, "begins with another record: records are missing");
	if (fread(s->bytes, 1, block.size, s->f) < block.size || fread(&seal, 1, sizeof seal, s->f) < sizeof seal)
		return wrong(s, "cut off");
	memcpy(s->before, s->hash, HASH);
	chain_block(s->hash, &s->start, &block, s->bytes, &statement);
	if (memcmp(seal.hash, s->hash, HASH))
		return wrong(s, "was changed: its hash differs");
	if (crypto_ed25519_check(seal.signature, s->start.key, (const uint8_t *)&statement, sizeof statement))
		return wrong(s, "its signature is not by the key");
	if (!well_formed(&block, s->bytes))
		return wrong(s, "its records are malformed");
	if (show)
		show_records(s->bytes, block.size, block.first);
	s->blocks++;
	s->records += block.count;
	s->last = block.last;
	if (s->head.newest && s->head.newest->blocks == s->blocks)
		memcpy(s->at_head, s->hash, HASH);
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

static bool read_head(struct found *h, const struct start *start)
{
	FILE *f = h->fd < 0 ? NULL : fdopen(h->fd, "r");
	char more;

	if (!f) {
		printf("%s: %s\n", lind_shown(h->name), strerror(h->fd < 0 ? h->error : errno));
		return false;
	}
	h->size = fread(h->at, 1, sizeof h->at, f);
	h->size += fread(&more, 1, 1, f);
	fclose(f);
	for (int i = 0; i < 2; i++) {
		const struct statement *said = &h->at[i].statement;

		h->is_signed[i] = h->size >= (i + 1u) * sizeof *h->at &&
		    !memcmp(said->id, start->id, sizeof start->id) &&
		    !crypto_ed25519_check(h->at[i].signature, start->key, (const uint8_t *)said, sizeof *said);
		if (h->is_signed[i] && (!h->newest || said->blocks > h->newest->blocks))
			h->newest = said;
	}
	return true;
}

static int wrong_head(const struct state *s, const char *what)
{
	printf("%s: %s\n", lind_shown(s->head.name), what /* ours */);
	return 1;
}

/* Of a log that ended every byte of the head is known: nobody was killed while writing it. */
static bool is_whole(const struct state *s)
{
	const struct found *h = &s->head;
	size_t newest = (s->blocks - 1) % 2;

	if (s->blocks == 1)
		return h->size == sizeof *h->at && h->is_signed[0];
	return h->size == sizeof h->at && h->is_signed[0] && h->is_signed[1] && h->newest == &h->at[newest].statement &&
	    h->at[!newest].statement.blocks + 1 == s->blocks && !memcmp(h->at[!newest].statement.hash, s->before, HASH);
}

/* The log must be as long as its head says; the head may be one block behind, when the grate was
 * killed between the two. */
static int check_head(const struct state *s)
{
	const struct found *h = &s->head;
	const struct statement *newest = h->newest;

	if (!newest && !s->blocks)
		return h->size ? wrong_head(s, "was changed: the log has no block yet") : 0;
	if (!newest)
		return wrong_head(s, h->size < sizeof *h->at ? "cut off" : "has no signature of this log's key");
	if (newest->blocks > s->blocks) {
		printf("%s: cut off: the head says %llu records, and there are %llu\n", lind_shown(s->name),
		    (unsigned long long)newest->records, (unsigned long long)s->records);
		return 1;
	}
	if (memcmp(newest->hash, s->at_head, HASH) || (!h->copy && newest->blocks + 1 < s->blocks))
		return wrong_head(s, "is not the head of this log");
	if (h->copy || !s->last)
		return 0;
	if (newest->blocks < s->blocks && (h->is_signed[(s->blocks - 1) % 2] || h->size == sizeof *h->at)) {
		wrong_head(s,
		    "does not know the last block: it is an older one, or the grate was killed before it could write this one");
		return 2;
	}
	return is_whole(s) ? 0 : wrong_head(s, "was changed");
}

static int check(struct state *s, const char *key, bool show)
{
	uint8_t wanted[32];
	int r;

	if (fread(&s->start, 1, sizeof s->start, s->f) < sizeof s->start || memcmp(s->start.magic, "LINDWIT1", 8)) {
		printf("%s: is no log\n", lind_shown(s->name));
		return 1;
	}
	if (key && !read_hex(key, wanted, sizeof wanted)) {
		printf("%s: a key has 64 hexadecimal digits\n", lind_shown(key));
		return 3;
	}
	if (key && memcmp(wanted, s->start.key, sizeof wanted)) {
		printf("%s: is signed with another key\n", lind_shown(s->name));
		return 1;
	}
	if (s->head.name && !read_head(&s->head, &s->start))
		return 1;
	chain_start(&s->start, s->hash);
	while (!(r = next_block(s, show)))
		;
	if (r > 0 || (r = s->head.name ? check_head(s) : 0))
		return r;
	printf("%s: %llu records in %llu blocks, %s%s\n", lind_shown(s->name), (unsigned long long)s->records,
	    (unsigned long long)s->blocks,
	    s->last
		? "whole"
		: "unchanged as far as it goes, but it does not end: the grate runs, was killed, or the end was cut off",
	    key ? "" : "; signed by the key in the log, which nobody vouches for without --public");
	return s->last ? 0 : 2;
}

int verify(const char *log, const char *head, bool copy, const char *key, bool show)
{
	struct state s = { .name = lind_file_name(log), .f = lind_read_file(log), .bytes = malloc(BLOCK_SIZE) };
	char beside[PATH_MAX];
	int r;

	if (!s.f || !s.bytes) {
		printf("%s: %s\n", lind_shown(s.name), strerror(errno));
		return 3;
	}
	snprintf(beside, sizeof beside, "%s.head", s.name);
	if (head) {
		s.head.name = head == log ? beside : lind_file_name(head);
		s.head.copy = copy;
		s.head.fd = lind_open_file(head, head == log ? ".head" : NULL, O_RDONLY, 0);
		s.head.error = errno;
	}
	r = check(&s, key, show);
	fclose(s.f);
	free(s.bytes);
	return r;
}
