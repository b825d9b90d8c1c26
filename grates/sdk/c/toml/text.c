/* Comments, strings and keys of a TOML file. */
#include <stdlib.h>
#include <string.h>
#include "parser.h"

/* The number of bytes of the UTF-8 character at `s`, 0 if it is none. */
static size_t utf8(const char *s, const char *end)
{
	const unsigned char *b = (const unsigned char *)s;
	size_t n = *b < 0x80 ? 1 : *b < 0xc2 ? 0 : *b < 0xe0 ? 2 : *b < 0xf0 ? 3 : *b < 0xf5 ? 4 : 0;

	if (!n || (size_t)(end - s) < n)
		return 0;
	for (size_t i = 1; i < n; i++)
		if ((b[i] & 0xc0) != 0x80)
			return 0;
	/* Too long, a surrogate, beyond the last. */
	if ((*b == 0xe0 && b[1] < 0xa0) || (*b == 0xed && b[1] > 0x9f) || (*b == 0xf0 && b[1] < 0x90) ||
	    (*b == 0xf4 && b[1] > 0x8f))
		return 0;
	return n;
}

size_t lind_toml_read_char(struct parser *p)
{
	size_t n = utf8(p->at, p->end);
	int c = peek(p);

	if (n && (c >= ' ' || c == '\t') && c != 0x7f)
		return n;
	if (c == '\n' || c == '\r')
		lind_toml_fail(p, p->at, "the line ends inside of it");
	else if (n)
		lind_toml_fail(p, p->at, "control character %#x", (unsigned)c);
	else
		lind_toml_fail(p, p->at, "not UTF-8");
	return 0;
}

static size_t put_utf8(char *to, uint32_t c)
{
	if (c < 0x80) {
		to[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		to[0] = (char)(0xc0 | c >> 6);
		to[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		to[0] = (char)(0xe0 | c >> 12);
		to[1] = (char)(0x80 | (c >> 6 & 0x3f));
		to[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	to[0] = (char)(0xf0 | c >> 18);
	to[1] = (char)(0x80 | (c >> 12 & 0x3f));
	to[2] = (char)(0x80 | (c >> 6 & 0x3f));
	to[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

/* Decodes the characters after a backslash. The number of bytes put at `to`, at most 4; 0 is an
 * error. */
static size_t escape(struct parser *p, char *to)
{
	static const char letters[] = "btnfr\"\\", meant[] = "\b\t\n\f\r\"\\";
	const char *begin = p->at - 1, *letter;
	int c = peek(p), digits = c == 'u' ? 4 : c == 'U' ? 8 : 0;
	uint32_t code = 0;

	if (c > 0 && (letter = strchr(letters, c))) {
		*to = meant[letter - letters];
		p->at++;
		return 1;
	}
	if (!digits) {
		lind_toml_fail(p, begin, "no such escape; a backslash is written \\\\, or in a 'literal string'");
		return 0;
	}
	p->at++;
	for (int i = 0; i < digits; i++, p->at++) {
		if (digit(peek(p)) > 15) {
			lind_toml_fail(p, begin, "\\%c takes %d hexadecimal digits", c, digits);
			return 0;
		}
		code = code << 4 | (uint32_t)digit(peek(p));
	}
	if (!code || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
		lind_toml_fail(p, begin, "no such character");
		return 0;
	}
	return put_utf8(to, code);
}

char *lind_toml_read_string(struct parser *p, size_t *length)
{
	const char *begin = p->at;
	char quote = *p->at++, *text;
	size_t n, room = 1, used = 0;

	if (p->end - p->at >= 2 && p->at[0] == quote && p->at[1] == quote)
		return lind_toml_fail(p, begin, "multi-line strings are not supported");
	/* Nothing in it gets longer than it is written. */
	for (const char *s = p->at; s < p->end && *s != '\n' && *s != quote; s++)
		room += quote == '"' && *s == '\\' && s + 1 < p->end ? (s++, 2) : 1;
	if (!(text = malloc(room + 4)))
		return lind_toml_fail(p, begin, "out of memory");
	while (!accept(p, quote)) {
		if (p->at == p->end)
			return lind_toml_fail(p, begin, "the string does not end");
		if (quote == '"' && accept(p, '\\'))
			n = escape(p, text + used);
		else if ((n = lind_toml_read_char(p))) {
			memcpy(text + used, p->at, n);
			p->at += n;
		}
		if (!n)
			return NULL;
		used += n;
	}
	text[used] = 0;
	*length = used;
	return text;
}

static bool bare(int c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
}

char *lind_toml_read_key(struct parser *p)
{
	const char *begin = p->at;
	size_t length;
	char *name;

	if (peek(p) == '"' || peek(p) == '\'')
		return lind_toml_read_string(p, &length);
	while (bare(peek(p)))
		p->at++;
	if (p->at == begin)
		return lind_toml_fail(p, begin, "expected a key");
	if (!(name = strndup(begin, (size_t)(p->at - begin))))
		return lind_toml_fail(p, begin, "out of memory");
	return name;
}
