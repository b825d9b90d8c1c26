/* Texts that grow, and quoting. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "strace.h"

void text_init(struct text *t)
{
	t->data = t->small;
	t->length = 0;
	t->room = sizeof t->small;
	t->small[0] = 0;
}

void text_free(struct text *t)
{
	if (t->data != t->small)
		free(t->data);
}

void text_clear(struct text *t)
{
	t->length = 0;
	t->data[0] = 0;
}

/* Whether `more` bytes and a NUL fit now. */
static bool fits(struct text *t, size_t more)
{
	size_t room = t->room;
	char *grown;

	if (t->length + more < room)
		return true;
	while (room <= t->length + more)
		room *= 2;
	if (!(grown = t->data == t->small ? malloc(room) : realloc(t->data, room)))
		return false;
	if (t->data == t->small)
		memcpy(grown, t->small, t->length + 1);
	t->data = grown;
	t->room = room;
	return true;
}

void text_bytes(struct text *t, const char *bytes, size_t length)
{
	if (!fits(t, length))
		return;
	memcpy(t->data + t->length, bytes, length);
	t->length += length;
	t->data[t->length] = 0;
}

void text_add(struct text *t, const char *format, ...)
{
	char part[256];
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(part, sizeof part, format, ap);
	va_end(ap);
	if (n > 0)
		text_bytes(t, part, (size_t)n < sizeof part ? (size_t)n : sizeof part - 1);
}

void text_quoted(struct text *t, const char *bytes, size_t length, size_t limit, bool more)
{
	static const char letters[] = "\a\b\t\n\v\f\r", names[] = "abtnvfr";

	if (length > limit) {
		length = limit;
		more = true;
	}
	text_bytes(t, "\"", 1);
	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)bytes[i];
		const char *letter = c ? strchr(letters, c) : NULL;

		if (c == '"' || c == '\\')
			text_add(t, "\\%c", c);
		else if (letter && c != '\a' && c != '\b')
			text_add(t, "\\%c", names[letter - letters]);
		else if (c >= ' ' && c < 127)
			text_bytes(t, bytes + i, 1);
		else if (i + 1 < length && bytes[i + 1] >= '0' && bytes[i + 1] <= '7')
			text_add(t, "\\%03o", c);
		else
			text_add(t, "\\%o", c);
	}
	text_add(t, more ? "\"..." : "\"");
}
