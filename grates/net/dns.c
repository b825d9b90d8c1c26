/*
 * DNS replies, as far as this grate needs them: RFC 1035. Everything in them may be a lie: every
 * offset is checked, names that point are followed a bounded number of times, and what is taken is
 * only what the answers say about the name that was asked for, over its CNAMEs in the order that
 * they lead on.
 */
#include <ctype.h>
#include <string.h>
#include "dns.h"

#define HEADER   12
#define CNAME    5
#define A        1
#define AAAA     28
#define INTERNET 1
/* Names that lead on, and records that are looked at. */
#define MOST_HOPS     16
#define MOST_RECORDS  256
#define MOST_POINTERS 32

struct reader {
	const uint8_t *at;
	size_t length, pos;
	bool bad;
};

static uint16_t word(struct reader *r)
{
	uint16_t w;

	if (r->bad || r->length - r->pos < 2) {
		r->bad = true;
		return 0;
	}
	w = (uint16_t)(r->at[r->pos] << 8 | r->at[r->pos + 1]);
	r->pos += 2;
	return w;
}

/* A name in lower case, without its last dot. Bytes that no host name has make it bad. */
static void name(struct reader *r, char to[DNS_NAME])
{
	size_t pos = r->pos, n = 0;
	unsigned pointers = 0;
	bool jumped = false;

	to[0] = 0;
	while (!r->bad) {
		uint8_t length;

		if (pos >= r->length)
			break;
		length = r->at[pos++];
		if (!length) {
			if (!jumped)
				r->pos = pos;
			return;
		}
		if ((length & 0xc0) == 0xc0) {
			if (pos >= r->length || ++pointers > MOST_POINTERS)
				break;
			if (!jumped)
				r->pos = pos + 1;
			jumped = true;
			pos = (size_t)(length & 0x3f) << 8 | r->at[pos];
			continue;
		}
		if (length & 0xc0 || r->length - pos < length || n + length + 2 > DNS_NAME)
			break;
		if (n)
			to[n++] = '.';
		for (unsigned i = 0; i < length; i++, pos++) {
			uint8_t b = r->at[pos];

			if (!isalnum(b) && b != '-' && b != '_')
				r->bad = true;
			to[n++] = (char)tolower(b);
		}
		to[n] = 0;
	}
	r->bad = true;
}

struct record {
	char owner[DNS_NAME];
	uint16_t type, class, size;
	uint32_t ttl;
	size_t data;
};

static void record(struct reader *r, struct record *to)
{
	name(r, to->owner);
	to->type = word(r);
	to->class = word(r);
	to->ttl = (uint32_t)word(r) << 16;
	to->ttl |= word(r);
	to->size = word(r);
	to->data = r->pos;
	if (r->bad || r->length - r->pos < to->size)
		r->bad = true;
	else
		r->pos += to->size;
}

/* Looks through the answers for what `owner` has: its addresses, or the name it stands for.
 * False if it stands for none. */
static bool look(
    const struct reader *from, unsigned count, const char *owner, struct dns_answer *answer, char next[DNS_NAME])
{
	struct reader r = *from;
	bool found = false;

	for (unsigned i = 0; i < count && !r.bad; i++) {
		struct record rr;

		record(&r, &rr);
		if (r.bad || rr.class != INTERNET || strcmp(rr.owner, owner))
			continue;
		if (rr.type == CNAME && !found) {
			struct reader target = r;

			target.pos = rr.data;
			name(&target, next);
			found = !target.bad;
		}
		if (((rr.type == A && rr.size == 4) || (rr.type == AAAA && rr.size == 16)) &&
		    answer->count < DNS_ADDRESSES) {
			unsigned n = answer->count++;

			memcpy(answer->of[n].ip, from->at + rr.data, rr.size);
			answer->of[n].six = rr.type == AAAA;
			answer->of[n].ttl = rr.ttl;
		}
	}
	return found;
}

bool dns_read(const uint8_t *message, size_t length, struct dns_answer *answer)
{
	struct reader r = { message, length, 2, false };
	char owner[DNS_NAME], next[DNS_NAME];
	uint16_t flags, questions, answers, type, class;

	memset(answer, 0, sizeof *answer);
	if (length < HEADER)
		return false;
	flags = word(&r);
	questions = word(&r);
	answers = word(&r);
	r.pos = HEADER;
	/* A reply, to a standard query, not cut, without error, to one question. */
	if (!(flags & 0x8000) || flags & 0x7800 || flags & 0x0200 || flags & 0x000f || questions != 1)
		return false;
	name(&r, answer->name);
	type = word(&r);
	class = word(&r);
	if (r.bad || !*answer->name || class != INTERNET || (type != A && type != AAAA))
		return false;
	if (answers > MOST_RECORDS)
		answers = MOST_RECORDS;
	memcpy(owner, answer->name, sizeof owner);
	for (unsigned hop = 0; hop < MOST_HOPS && look(&r, answers, owner, answer, next); hop++)
		memcpy(owner, next, sizeof owner);
	return answer->count > 0;
}

bool dns_question(const uint8_t *message, size_t length, char asked[DNS_NAME])
{
	struct reader r = { message, length, 2, false };
	uint16_t flags, questions;

	if (length < HEADER)
		return false;
	flags = word(&r);
	questions = word(&r);
	r.pos = HEADER;
	if (flags & 0xf800 || questions != 1)
		return false;
	name(&r, asked);
	return !r.bad && *asked;
}

/* `*.example.org` is every name below it, and not itself. */
bool dns_matches(const char *pattern, const char *text)
{
	size_t p, t;

	if (strncmp(pattern, "*.", 2))
		return !strcmp(pattern, text);
	pattern++;
	p = strlen(pattern);
	t = strlen(text);
	return t > p && !strcmp(text + t - p, pattern);
}
