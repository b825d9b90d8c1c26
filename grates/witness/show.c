/* Records as text: number, time, cage, call, arguments, result. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <lind/syscall_table.h>
#include <stdio.h>
#include <string.h>
#include "show.h"
#include "witness.h"

static const struct lind_syscall *row_of(uint32_t nr)
{
	for (size_t i = 0; i < sizeof lind_syscalls / sizeof *lind_syscalls; i++)
		if (lind_syscalls[i].nr == nr)
			return &lind_syscalls[i];
	return NULL;
}

static void show_text(const struct piece *p, const uint8_t *bytes)
{
	putchar('"');
	for (unsigned i = 0; i < p->kept; i++)
		if (bytes[i] >= ' ' && bytes[i] < 127 && bytes[i] != '"' && bytes[i] != '\\')
			putchar(bytes[i]);
		else
			printf("\\%03o", bytes[i]);
	printf(p->kept < p->length ? "\"..." : "\"");
}

/* The piece of an argument; NULL if there is none. */
static const uint8_t *piece_of(const struct record *r, const uint8_t *at, unsigned argument, struct piece *p)
{
	for (size_t used = sizeof *r + r->arguments * 8u; used < r->size; used += sizeof *p + (p->kept + 7u) / 8 * 8) {
		memcpy(p, at + used, sizeof *p);
		if (p->argument == argument)
			return at + used + sizeof *p;
	}
	return NULL;
}

static void show_record(const struct record *r, const uint8_t *at, uint64_t number)
{
	const struct lind_syscall *row = row_of(r->nr);

	printf("%" PRIu64 " %" PRIu64 ".%09u cage %u ", number, r->time / 1000000000, (unsigned)(r->time % 1000000000), r->cage);
	if (row)
		printf("%s(", row->name);
	else
		printf("call %u(", r->nr);
	for (unsigned i = 0; i < r->arguments; i++) {
		enum lind_kind kind = row && i < row->count ? row->args[i].kind : LIND_ULONG;
		const uint8_t *text;
		struct piece p;
		uint64_t v;

		memcpy(&v, at + sizeof *r + 8 * i, sizeof v);
		printf("%s", i ? ", " : "");
		if ((text = piece_of(r, at, i, &p)))
			show_text(&p, text);
		else if (kind == LIND_FD || kind == LIND_DIRFD || kind == LIND_INT || kind == LIND_PID)
			printf("%d", (int)(uint32_t)v);
		else
			printf("%#" PRIx64, v);
	}
	printf(") = %" PRId64 "\n", r->result);
}

void show_records(const uint8_t *bytes, size_t size, uint64_t first)
{
	struct record r;

	for (size_t at = 0; at < size; at += r.size) {
		memcpy(&r, bytes + at, sizeof r);
		show_record(&r, bytes + at, first++);
	}
}
