/* The parser of lind/toml.h: tables, arrays and their contents. */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include "parser.h"

/* How a table began; what may be added to it later depends on that. */
enum { IMPLIED = 1, HEADED, DOTTED, INLINE };

void *lind_toml_fail(struct parser *p, const char *where, const char *format, ...)
{
	va_list ap;

	p->error->line = p->line;
	p->error->column = (unsigned)(where - p->line_start) + 1;
	va_start(ap, format);
	vsnprintf(p->error->text, sizeof p->error->text, format, ap);
	va_end(ap);
	return NULL;
}

struct lind_toml *lind_toml_new(struct parser *p, const char *where, enum lind_toml_type type)
{
	struct lind_toml *v = calloc(1, sizeof *v);

	if (!v)
		return lind_toml_fail(p, where, "out of memory");
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

static void skip_blanks(struct parser *p)
{
	while (peek(p) == ' ' || peek(p) == '\t')
		p->at++;
}

/* Over a comment and the end of the line, if they are here. False with an error, or with what
 * else is here left alone. */
static bool line_end(struct parser *p)
{
	size_t n;

	if (peek(p) == '#')
		while (
		    p->at < p->end && *p->at != '\n' && !(*p->at == '\r' && p->end - p->at > 1 && p->at[1] == '\n')) {
			if (!(n = lind_toml_read_char(p)))
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
				lind_toml_fail(p, p->at, "control character 0xd");
			return false;
		}
	}
}

static struct lind_toml *find(const struct lind_toml *table, const char *name)
{
	struct lind_toml *v = table->first;

	while (v && strcmp(v->key, name))
		v = v->next;
	return v;
}

static struct lind_toml *add_table(
    struct parser *p, struct lind_toml *in, const char *where, const char *name, uint8_t made)
{
	struct lind_toml *table = lind_toml_new(p, where, LIND_TOML_TABLE);

	if (table) {
		table->key = name;
		table->made = made;
		append(in, table);
	}
	return table;
}

static struct lind_toml *value(struct parser *p);
static bool assignment(struct parser *p, struct lind_toml *table);

static struct lind_toml *array(struct parser *p)
{
	struct lind_toml *all = lind_toml_new(p, p->at, LIND_TOML_ARRAY), *v;

	p->at++;
	while (all && skip_lines(p)) {
		if (accept(p, ']'))
			return all;
		if (!(v = value(p)) || !skip_lines(p))
			return NULL;
		append(all, v);
		if (!accept(p, ',') && peek(p) != ']')
			return lind_toml_fail(
			    p, p->at, "expected , or ] in the array that begins in line %u", all->line);
	}
	return NULL;
}

static struct lind_toml *inline_table(struct parser *p)
{
	struct lind_toml *table = lind_toml_new(p, p->at, LIND_TOML_TABLE);

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
	return accept(p, '}') ? table : lind_toml_fail(p, p->at, "expected , or }");
}

static struct lind_toml *nested(struct parser *p)
{
	struct lind_toml *v;

	if (p->depth == LIND_TOML_DEPTH)
		return lind_toml_fail(p, p->at, "nested more than %d deep", LIND_TOML_DEPTH);
	p->depth++;
	v = *p->at == '[' ? array(p) : inline_table(p);
	p->depth--;
	return v;
}

static struct lind_toml *value(struct parser *p)
{
	struct lind_toml *v;
	size_t n = lind_toml_word(p);
	int c = peek(p);

	if (c == '[' || c == '{')
		return nested(p);
	if (c == '"' || c == '\'')
		return (v = lind_toml_new(p, p->at, LIND_TOML_STRING)) &&
			(v->string = lind_toml_read_string(p, &v->length))
		    ? v
		    : NULL;
	if ((n == 4 && !memcmp(p->at, "true", 4)) || (n == 5 && !memcmp(p->at, "false", 5))) {
		if ((v = lind_toml_new(p, p->at, LIND_TOML_BOOL)))
			v->truth = n == 4;
		p->at += n;
		return v;
	}
	if (!n)
		return lind_toml_fail(p, p->at, "expected a value");
	return lind_toml_read_number(p);
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
		if (!(name = lind_toml_read_key(p)))
			return false;
		skip_blanks(p);
		if (!accept(p, '.'))
			break;
		skip_blanks(p);
		in = find(table, name);
		if (in && (in->type != LIND_TOML_TABLE || in->made == HEADED || in->made == INLINE))
			return lind_toml_fail(p, where, "'%s' has a value already, in line %u", name, in->line);
		if (in)
			in->made = DOTTED;
		if (++depth > LIND_TOML_DEPTH)
			return lind_toml_fail(p, where, "nested more than %d deep", LIND_TOML_DEPTH);
		if (!(table = in ? in : add_table(p, table, where, name, DOTTED)))
			return false;
	}
	if ((in = find(table, name)))
		return lind_toml_fail(p, where, "'%s' has a value already, in line %u", name, in->line);
	if (!accept(p, '='))
		return lind_toml_fail(p, p->at, "expected = after the key");
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
	return lind_toml_fail(p, where, "'%s' has a value already, in line %u", name, v->line);
}

/* [[name]]: another element. */
static struct lind_toml *element(struct parser *p, struct lind_toml *in, const char *where, const char *name)
{
	struct lind_toml *all = find(in, name), *table;

	if (all && !(all->type == LIND_TOML_ARRAY && all->made == HEADED))
		return lind_toml_fail(p, where, "'%s' has a value already, in line %u", name, all->line);
	if (!all) {
		if (!(all = lind_toml_new(p, where, LIND_TOML_ARRAY)))
			return NULL;
		all->made = HEADED;
		all->key = name;
		append(in, all);
	}
	if ((table = lind_toml_new(p, where, LIND_TOML_TABLE))) {
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
		return lind_toml_fail(p, where, "'%s' has a value already, in line %u", name, v->line);
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
		if (!(name = lind_toml_read_key(p)))
			return NULL;
		if (++depth > LIND_TOML_DEPTH)
			return lind_toml_fail(p, where, "nested more than %d deep", LIND_TOML_DEPTH);
		skip_blanks(p);
		if (!accept(p, '.'))
			break;
		if (!(table = enter(p, table, where, name)))
			return NULL;
	}
	if (!accept(p, ']') || (many && !accept(p, ']')))
		return lind_toml_fail(p, p->at, many ? "expected ]]" : "expected ]");
	return many ? element(p, table, where, name) : section(p, table, where, name);
}

struct lind_toml *lind_toml_parse(const char *file, const char *text, size_t length, struct lind_toml_error *error)
{
	struct parser p = {
		.file = file, .at = text, .end = text + length, .line_start = text, .line = 1, .error = error
	};
	struct lind_toml *root, *table;

	*error = (struct lind_toml_error){ 0 };
	if (length > LIND_TOML_SIZE)
		return lind_toml_fail(&p, text, "more than %u bytes", LIND_TOML_SIZE);
	if (!(root = table = lind_toml_new(&p, text, LIND_TOML_TABLE)))
		return NULL;
	while (skip_lines(&p) && p.at < p.end) {
		if (*p.at != '[' ? !assignment(&p, table) : !(table = header(&p, root)))
			return NULL;
		skip_blanks(&p);
		if (!line_end(&p))
			return error->line ? NULL : lind_toml_fail(&p, p.at, "expected the end of the line");
	}
	return error->line ? NULL : root;
}
