/*
 * Records as text, as the strace grate prints calls: number, time, cage, call, arguments, result.
 * Data that was not logged is shown as its address.
 */
#include <inttypes.h>
#include <lind/grate.h>
#include <stdio.h>
#include <string.h>
#include "show.h"
#include "strace.h"
#include "witness.h"

/* Behind what was cut off. */
#define MORE "..."

/* The data that the arguments of a call pointed to. */
struct pieces {
	char bytes[6][UINT16_MAX + sizeof MORE];
};

/* The call as it was made, but for what was not logged: that is in the memory of nobody. */
static void call_of(const struct record *r, const uint8_t *at, struct lind_call *call, struct pieces *pieces)
{
	struct piece p;

	*call = (struct lind_call){ .nr = r->nr, .caller = r->cage, .target = r->cage };
	for (unsigned i = 0; i < r->arguments && i < 6; i++)
		memcpy(&call->args[i].value, at + sizeof *r + 8 * i, sizeof call->args[i].value);
	for (size_t used = sizeof *r + r->arguments * 8u; used < r->size; used += sizeof p + (p.kept + 7u) / 8 * 8) {
		memcpy(&p, at + used, sizeof p);
		if (p.argument >= 6)
			continue;
		memcpy(pieces->bytes[p.argument], at + used + sizeof p, p.kept);
		strcpy(pieces->bytes[p.argument] + p.kept, p.kept < p.length ? MORE : "");
		call->args[p.argument] = lind_mine(pieces->bytes[p.argument]);
	}
}

static void put_unknown(struct text *line, const struct record *r, const struct lind_call *call)
{
	text_add(line, "call %u(", r->nr);
	for (unsigned i = 0; i < r->arguments && i < 6; i++)
		text_add(line, "%s%#llx", i ? ", " : "", (unsigned long long)call->args[i].value);
	text_add(line, ") = %lld", (long long)r->result);
}

static void put_known(struct text *line, struct traced *t)
{
	args_before(t);
	args_after(t);
	print_call(line, t);
	text_add(line, " = ");
	print_result(line, t);
	release_call(t);
}

static void show_record(const struct record *r, const uint8_t *at, uint64_t number)
{
	static struct pieces pieces;
	struct lind_call call;
	struct traced t = { .row = lind_syscall(r->nr), .call = &call, .result = r->result };
	struct text line;

	call_of(r, at, &call, &pieces);
	text_init(&line);
	text_add(&line, "%" PRIu64 " %" PRIu64 ".%09u cage %u%s ", number, r->time / 1000000000,
	    (unsigned)(r->time % 1000000000), r->cage, r->of_grate ? " (a grate)" : "");
	if (t.row && r->arguments == t.row->count)
		put_known(&line, &t);
	else
		put_unknown(&line, r, &call);
	puts(line.data);
	text_free(&line);
}

void show_records(const uint8_t *bytes, size_t size, uint64_t first)
{
	struct record r;

	for (size_t at = 0; at < size; at += r.size) {
		memcpy(&r, bytes + at, sizeof r);
		show_record(&r, bytes + at, first++);
	}
}
