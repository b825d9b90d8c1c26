/* Calls in words, and the last calls of a replay. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <lind/text.h>
#include "replay.h"

#define LAST 12

static struct last {
	uint32_t cage;
	struct record record;
} last[LAST];
static unsigned long noted;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

__attribute__((format(printf, 4, 5))) static void add(char *to, size_t room, size_t *used, const char *format, ...)
{
	va_list list;
	int n;

	va_start(list, format);
	n = *used < room ? vsnprintf(to + *used, room - *used, format, list) : 0;
	va_end(list);
	if (n > 0)
		*used += (size_t)n;
	if (*used >= room)
		*used = room - 1;
}

/* The next text in quotes, as a terminal may show it. */
static void add_quoted(char *to, size_t room, size_t *used, const char *text, size_t length)
{
	add(to, room, used, "\"");
	for (size_t i = 0; i < length && i < 64; i++) {
		const unsigned char byte = (unsigned char)text[i];

		if (byte >= ' ' && byte < 127 && byte != '"' && byte != '\\')
			add(to, room, used, "%c", byte);
		else
			add(to, room, used, byte == '\n' ? "\\n" : "\\x%02x", byte);
	}
	add(to, room, used, length > 64 ? "\"..." : "\"");
}

static bool has_text(const struct lind_syscall *row, int i)
{
	return row->args[i].kind == LIND_PATH || row->args[i].kind == LIND_STR ||
	    (row->args[i].kind == LIND_IN && row->args[i].layout == LIND_LAYOUT_BYTES);
}

static void add_argument(char *to, size_t room, size_t *used, enum lind_kind kind, uint64_t value)
{
	if (kind == LIND_FD || kind == LIND_DIRFD || kind == LIND_INT || kind == LIND_PID || kind == LIND_LEN ||
	    kind == LIND_SIGNAL)
		add(to, room, used, "%lld", kind == LIND_LEN ? (long long)value : (long long)(int32_t)value);
	else
		add(to, room, used, value ? "%#llx" : "%llu", (unsigned long long)value);
}

void show_call(char *to, size_t room, uint32_t nr, const uint64_t args[6], const char *texts, size_t length)
{
	const struct lind_syscall *row = row_of(nr);
	const char *end = texts + length;
	size_t used = 0;

	if (nr == NR_END) {
		add(to, room, &used, "its end");
		return;
	}
	if (row)
		add(to, room, &used, "%s(", row->name);
	else
		add(to, room, &used, "call %u(", nr);
	for (int i = 0; i < (row ? row->count : 6); i++) {
		uint32_t size = 0;

		add(to, room, &used, i ? ", " : "");
		if (row && args[i] && has_text(row, i) && end - texts >= 2)
			size = (unsigned char)texts[0] | (uint32_t)(unsigned char)texts[1] << 8;
		if (size && (size_t)(end - texts) >= size + 2u) {
			add_quoted(to, room, &used, texts + 2, size);
			texts += 2 + size;
		} else
			add_argument(to, room, &used, row ? row->args[i].kind : LIND_ULONG, args[i]);
	}
	add(to, room, &used, ")");
}

void show_result(char *to, size_t room, const struct record *r)
{
	if (r->nr == SYS_exit || r->nr == SYS_exit_group)
		snprintf(to, room, "?");
	else if (r->result < 0 && r->result >= -4095)
		snprintf(to, room, "-1 %s", lind_errno_name((int)-r->result));
	else
		snprintf(to, room, r->result > 65535 ? "%#llx" : "%lld", (long long)r->result);
}

void show_note(const struct client *client, const struct record *r)
{
	pthread_mutex_lock(&lock);
	last[noted++ % LAST] = (struct last){ client->cage, *r };
	pthread_mutex_unlock(&lock);
}

void show_last(void)
{
	char call[512], result[64];

	pthread_mutex_lock(&lock);
	lind_log("the last calls were:");
	for (unsigned long i = noted > LAST ? noted - LAST : 0; i < noted; i++) {
		const struct last *l = &last[i % LAST];

		show_call(call, sizeof call, l->record.nr, l->record.args, NULL, 0);
		show_result(result, sizeof result, &l->record);
		lind_log("  %llu: cage %u: %s = %s", (unsigned long long)l->record.number, l->cage, call, result);
	}
	pthread_mutex_unlock(&lock);
}
