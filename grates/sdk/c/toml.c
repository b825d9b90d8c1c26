/* The parser of lind/toml.h. */
#include <errno.h>
#include <lind/toml.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How a table began; what may be added to it later depends on that. */
enum { IMPLIED = 1, HEADED, DOTTED, INLINE };

struct parser {
	const char *file, *at, *end, *line_start;
	unsigned line, depth;
	struct lind_toml_error *error;
};

/* What is wrong at `where`, a place in the line that the parser is in. */
__attribute__((format(printf, 3, 4))) static void *fail(struct parser *p, const char *where, const char *format, ...)
{
	va_list ap;

	p->error->line = p->line;
	p->error->column = (unsigned)(where - p->line_start) + 1;
	va_start(ap, format);
	vsnprintf(p->error->text, sizeof p->error->text, format, ap);
	va_end(ap);
	return NULL;
}

static struct lind_toml *new_value(struct parser *p, const char *where, enum lind_toml_type type)
{
	struct lind_toml *v = calloc(1, sizeof *v);

	if (!v)
		return fail(p, where, "out of memory");
	v->type = type;
	v->file = p->file;
	v->line = p->line;
	v->column = (unsigned)(where - p->line_start) + 1;
	return v;
}

static void append(struct lind_toml *to, struct lind_toml *v)
{
	if (to->last)
		to->last->next = v;
	else
		to->first = v;
	to->last = v;
	to->count++;
}

static int peek(const struct parser *p)
{
	return p->at < p->end ? (unsigned char)*p->at : EOF;
}

static bool accept(struct parser *p, char c)
{
	if (p->at == p->end || *p->at != c)
		return false;
	p->at++;
	return true;
}

static void skip_blanks(struct parser *p)
{
	while (peek(p) == ' ' || peek(p) == '\t')
		p->at++;
}

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
	if ((*b == 0xe0 && b[1] < 0xa0) || (*b == 0xed && b[1] > 0x9f) || (*b == 0xf0 && b[1] < 0x90) || (*b == 0xf4 && b[1] > 0x8f))
		return 0;
	return n;
}

/* A character of a comment or string. 0, with an error, if it may not stand there. */
static size_t text_char(struct parser *p)
{
	size_t n = utf8(p->at, p->end);
	int c = peek(p);

	if (n && (c >= ' ' || c == '\t') && c != 0x7f)
		return n;
	if (c == '\n' || c == '\r')
		fail(p, p->at, "the line ends inside of it");
	else if (n)
		fail(p, p->at, "control character %#x", (unsigned)c);
	else
		fail(p, p->at, "not UTF-8");
	return 0;
}

/* Over a comment and the end of the line, if they are here. False with an error, or with what else is here left alone. */
static bool line_end(struct parser *p)
{
	size_t n;

	if (peek(p) == '#')
		while (p->at < p->end && *p->at != '\n' && !(*p->at == '\r' && p->end - p->at > 1 && p->at[1] == '\n')) {
			if (!(n = text_char(p)))
				return false;
			p->at += n;
		}
	if (peek(p) == '\r' && p->end - p->at > 1 && p->at[1] == '\n')
		p->at++;
	if (!accept(p, '\n'))
		return p->at == p->end;
	p->line++;
	p->line_start = p->at;
	return true;
}

/* Blanks, comments and ends of lines, as inside of an array. */
static bool skip_lines(struct parser *p)
{
	for (;;) {
		skip_blanks(p);
		if (p->at == p->end || !(*p->at == '#' || *p->at == '\r' || *p->at == '\n'))
			return true;
		if (!line_end(p)) {
			if (!p->error->line)
				fail(p, p->at, "control character 0xd");
			return false;
		}
	}
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

static int digit(int c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : 99;
}

/* What follows a backslash. The number of bytes put at `to`, at most 4; 0 is an error. */
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
		fail(p, begin, "no such escape; a backslash is written \\\\, or in a 'literal string'");
		return 0;
	}
	p->at++;
	for (int i = 0; i < digits; i++, p->at++) {
		if (digit(peek(p)) > 15) {
			fail(p, begin, "\\%c takes %d hexadecimal digits", c, digits);
			return 0;
		}
		code = code << 4 | (uint32_t)digit(peek(p));
	}
	if (!code || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) {
		fail(p, begin, "no such character");
		return 0;
	}
	return put_utf8(to, code);
}

/* "basic" or 'literal'. The text and its length; NULL is an error. */
static char *string(struct parser *p, size_t *length)
{
	const char *begin = p->at;
	char quote = *p->at++, *text;
	size_t n, room = 1, used = 0;

	if (p->end - p->at >= 2 && p->at[0] == quote && p->at[1] == quote)
		return fail(p, begin, "multi-line strings are not supported");
	/* Nothing in it gets longer than it is written. */
	for (const char *s = p->at; s < p->end && *s != '\n' && *s != quote; s++)
		room += quote == '"' && *s == '\\' && s + 1 < p->end ? (s++, 2) : 1;
	if (!(text = malloc(room + 4)))
		return fail(p, begin, "out of memory");
	while (!accept(p, quote)) {
		if (p->at == p->end)
			return fail(p, begin, "the string does not end");
		if (quote == '"' && accept(p, '\\'))
			n = escape(p, text + used);
		else if ((n = text_char(p))) {
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

static char *key(struct parser *p)
{
	const char *begin = p->at;
	size_t length;
	char *name;

	if (peek(p) == '"' || peek(p) == '\'')
		return string(p, &length);
	while (bare(peek(p)))
		p->at++;
	if (p->at == begin)
		return fail(p, begin, "expected a key");
	if (!(name = strndup(begin, (size_t)(p->at - begin))))
		return fail(p, begin, "out of memory");
	return name;
}

static struct lind_toml *find(const struct lind_toml *table, const char *name)
{
	struct lind_toml *v = table->first;

	while (v && strcmp(v->key, name))
		v = v->next;
	return v;
}

static struct lind_toml *add_table(struct parser *p, struct lind_toml *in, const char *where, const char *name, uint8_t made)
{
	struct lind_toml *table = new_value(p, where, LIND_TOML_TABLE);

	if (table) {
		table->key = name;
		table->made = made;
		append(in, table);
	}
	return table;
}

/* Words and numbers: up to what can end a value. */
static size_t word(const struct parser *p)
{
	size_t n = 0;

	while (p->at + n < p->end && !strchr(" \t\r\n,]}#", p->at[n]) && p->at[n])
		n++;
	return n;
}

/* Copies digits without the underscores between them. The length; 0 if something else is among them. */
static size_t digits(const char *from, size_t n, int base, char *to)
{
	size_t used = 0;

	for (size_t i = 0; i < n; i++) {
		if (from[i] == '_' && i && i + 1 < n && digit(from[i - 1]) < base && digit(from[i + 1]) < base)
			continue;
		if (digit((unsigned char)from[i]) >= base)
			return 0;
		to[used++] = from[i];
	}
	return used;
}

/* digits [. digits] [e [sign] digits], already without sign. */
static bool float_number(const char *w, size_t n, char *to)
{
	size_t whole = 0, used, part = 0;

	while (whole < n && w[whole] != '.' && w[whole] != 'e' && w[whole] != 'E')
		whole++;
	if (whole == n || !(used = digits(w, whole, 10, to)) || (used > 1 && to[0] == '0'))
		return false;
	if (w[whole] == '.') {
		to[used++] = '.';
		whole++;
		while (whole + part < n && w[whole + part] != 'e' && w[whole + part] != 'E')
			part++;
		if (!(n - whole) || !(part = digits(w + whole, part, 10, to + used)))
			return false;
		used += part;
		while (whole < n && w[whole] != 'e' && w[whole] != 'E')
			whole++;
	}
	if (whole < n) {
		to[used++] = 'e';
		whole++;
		if (whole < n && (w[whole] == '+' || w[whole] == '-'))
			to[used++] = w[whole++];
		if (!(part = digits(w + whole, n - whole, 10, to + used)))
			return false;
		used += part;
	}
	to[used] = 0;
	return true;
}

/* The integer of these characters, behind a sign. False if they are none. */
static bool integer(const char *w, size_t n, int base, char *to)
{
	size_t prefix = base == 10 ? 0 : 2, used = digits(w + prefix, n - prefix, base, to);

	to[used] = 0;
	return used && (base != 10 || used == 1 || to[0] != '0');
}

static struct lind_toml *number(struct parser *p)
{
	const char *begin = p->at, *w = p->at;
	size_t n = word(p);
	bool sign = n && (*w == '-' || *w == '+'), negative = sign && *w == '-';
	struct lind_toml *v = new_value(p, begin, LIND_TOML_INTEGER);
	uint64_t magnitude;
	char text[128];
	int base = 10;

	if (!v)
		return NULL;
	p->at += n;
	w += sign;
	n -= sign;
	if (n > 2 && w[0] == '0' && !sign)
		base = w[1] == 'x' ? 16 : w[1] == 'o' ? 8 : w[1] == 'b' ? 2 : 10;
	if (n < sizeof text && integer(w, n, base, text)) {
		errno = 0;
		magnitude = strtoull(text, NULL, base);
		if (errno || (base == 10 && magnitude > (uint64_t)INT64_MAX + negative))
			return fail(p, begin, "more than 64 bits");
		v->integer = (int64_t)(negative ? -magnitude : magnitude);
		v->wide = !negative && magnitude > INT64_MAX;
		return v;
	}
	if (n < sizeof text && base == 10 && float_number(w, n, text)) {
		v->type = LIND_TOML_FLOAT;
		v->number = strtod(text, NULL);
		v->number = negative ? -v->number : v->number;
		return v;
	}
	return fail(p, begin, "expected a value, not '%.*s'", (int)(p->at - begin < 40 ? p->at - begin : 40), begin);
}

static struct lind_toml *value(struct parser *p);
static bool assignment(struct parser *p, struct lind_toml *table);

static struct lind_toml *array(struct parser *p)
{
	struct lind_toml *all = new_value(p, p->at, LIND_TOML_ARRAY), *v;

	p->at++;
	while (all && skip_lines(p)) {
		if (accept(p, ']'))
			return all;
		if (!(v = value(p)) || !skip_lines(p))
			return NULL;
		append(all, v);
		if (!accept(p, ',') && peek(p) != ']')
			return fail(p, p->at, "expected , or ] in the array that begins in line %u", all->line);
	}
	return NULL;
}

static struct lind_toml *inline_table(struct parser *p)
{
	struct lind_toml *table = new_value(p, p->at, LIND_TOML_TABLE);

	p->at++;
	if (!table)
		return NULL;
	table->made = INLINE;
	skip_blanks(p);
	if (accept(p, '}'))
		return table;
	do {
		skip_blanks(p);
		if (!assignment(p, table))
			return NULL;
		skip_blanks(p);
	} while (accept(p, ','));
	return accept(p, '}') ? table : fail(p, p->at, "expected , or }");
}

static struct lind_toml *nested(struct parser *p)
{
	struct lind_toml *v;

	if (p->depth == LIND_TOML_DEPTH)
		return fail(p, p->at, "nested more than %d deep", LIND_TOML_DEPTH);
	p->depth++;
	v = *p->at == '[' ? array(p) : inline_table(p);
	p->depth--;
	return v;
}

static struct lind_toml *value(struct parser *p)
{
	struct lind_toml *v;
	size_t n = word(p);
	int c = peek(p);

	if (c == '[' || c == '{')
		return nested(p);
	if (c == '"' || c == '\'')
		return (v = new_value(p, p->at, LIND_TOML_STRING)) && (v->string = string(p, &v->length)) ? v : NULL;
	if ((n == 4 && !memcmp(p->at, "true", 4)) || (n == 5 && !memcmp(p->at, "false", 5))) {
		if ((v = new_value(p, p->at, LIND_TOML_BOOL)))
			v->truth = n == 4;
		p->at += n;
		return v;
	}
	if (!n)
		return fail(p, p->at, "expected a value");
	return number(p);
}

/* key = value, or a.b.c = value. */
static bool assignment(struct parser *p, struct lind_toml *table)
{
	struct lind_toml *v, *in;
	unsigned depth = p->depth;
	const char *where;
	char *name;

	for (;;) {
		where = p->at;
		if (!(name = key(p)))
			return false;
		skip_blanks(p);
		if (!accept(p, '.'))
			break;
		skip_blanks(p);
		in = find(table, name);
		if (in && (in->type != LIND_TOML_TABLE || in->made == HEADED || in->made == INLINE))
			return fail(p, where, "'%s' has a value already, in line %u", name, in->line);
		if (in)
			in->made = DOTTED;
		if (++depth > LIND_TOML_DEPTH)
			return fail(p, where, "nested more than %d deep", LIND_TOML_DEPTH);
		if (!(table = in ? in : add_table(p, table, where, name, DOTTED)))
			return false;
	}
	if ((in = find(table, name)))
		return fail(p, where, "'%s' has a value already, in line %u", name, in->line);
	if (!accept(p, '='))
		return fail(p, p->at, "expected = after the key");
	skip_blanks(p);
	if (!(v = value(p)))
		return false;
	v->key = name;
	append(table, v);
	return true;
}

/* A table on the way to one that a header names. */
static struct lind_toml *enter(struct parser *p, struct lind_toml *in, const char *where, const char *name)
{
	struct lind_toml *v = find(in, name);

	if (!v)
		return add_table(p, in, where, name, IMPLIED);
	if (v->type == LIND_TOML_ARRAY && v->made == HEADED)
		return v->last;
	if (v->type == LIND_TOML_TABLE && v->made != INLINE)
		return v;
	return fail(p, where, "'%s' has a value already, in line %u", name, v->line);
}

/* [[name]]: another element. */
static struct lind_toml *element(struct parser *p, struct lind_toml *in, const char *where, const char *name)
{
	struct lind_toml *all = find(in, name), *table;

	if (all && !(all->type == LIND_TOML_ARRAY && all->made == HEADED))
		return fail(p, where, "'%s' has a value already, in line %u", name, all->line);
	if (!all) {
		if (!(all = new_value(p, where, LIND_TOML_ARRAY)))
			return NULL;
		all->made = HEADED;
		all->key = name;
		append(in, all);
	}
	if ((table = new_value(p, where, LIND_TOML_TABLE))) {
		table->made = HEADED;
		append(all, table);
	}
	return table;
}

/* [name] */
static struct lind_toml *section(struct parser *p, struct lind_toml *in, const char *where, const char *name)
{
	struct lind_toml *v = find(in, name);

	if (!v)
		return add_table(p, in, where, name, HEADED);
	if (v->type != LIND_TOML_TABLE || v->made != IMPLIED)
		return fail(p, where, "'%s' has a value already, in line %u", name, v->line);
	v->made = HEADED;
	v->line = p->line;
	v->column = (unsigned)(where - p->line_start) + 1;
	return v;
}

static struct lind_toml *header(struct parser *p, struct lind_toml *root)
{
	struct lind_toml *table = root;
	bool many;
	unsigned depth = 0;
	const char *where;
	char *name;

	p->at++;
	many = accept(p, '[');
	for (;;) {
		skip_blanks(p);
		where = p->at;
		if (!(name = key(p)))
			return NULL;
		if (++depth > LIND_TOML_DEPTH)
			return fail(p, where, "nested more than %d deep", LIND_TOML_DEPTH);
		skip_blanks(p);
		if (!accept(p, '.'))
			break;
		if (!(table = enter(p, table, where, name)))
			return NULL;
	}
	if (!accept(p, ']') || (many && !accept(p, ']')))
		return fail(p, p->at, many ? "expected ]]" : "expected ]");
	return many ? element(p, table, where, name) : section(p, table, where, name);
}

struct lind_toml *lind_toml_parse(const char *file, const char *text, size_t length, struct lind_toml_error *error)
{
	struct parser p = { .file = file, .at = text, .end = text + length, .line_start = text, .line = 1, .error = error };
	struct lind_toml *root, *table;

	*error = (struct lind_toml_error){ 0 };
	if (length > LIND_TOML_SIZE)
		return fail(&p, text, "more than %u bytes", LIND_TOML_SIZE);
	if (!(root = table = new_value(&p, text, LIND_TOML_TABLE)))
		return NULL;
	while (skip_lines(&p) && p.at < p.end) {
		if (*p.at != '[' ? !assignment(&p, table) : !(table = header(&p, root)))
			return NULL;
		skip_blanks(&p);
		if (!line_end(&p))
			return error->line ? NULL : fail(&p, p.at, "expected the end of the line");
	}
	return error->line ? NULL : root;
}
