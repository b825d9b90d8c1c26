/* Reading files for lind/toml.h, and taking values out of what was read. */
#include <errno.h>
#include <lind/raw.h>
#include <lind/toml.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const types[] = { "?", "a table", "an array", "a string", "an integer", "a number",
	"true or false" };

void lind_toml_die(const struct lind_toml *at, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	lind_die("%s:%u:%u: %s", at->file, at->line, at->column, text);
}

struct lind_toml *lind_toml_load(const char *path)
{
	FILE *f = lind_read_file(path);
	char *text = malloc(LIND_TOML_SIZE + 1), *name = strdup(path = lind_file_name(path));
	struct lind_toml_error error;
	struct lind_toml *root;
	size_t n;

	if (!f)
		lind_die("%s: %s", path, strerror(errno));
	if (!text || !name)
		lind_die("%s: out of memory", path);
	n = fread(text, 1, LIND_TOML_SIZE + 1, f);
	if (ferror(f))
		lind_die("%s: %s", path, strerror(errno));
	fclose(f);
	if (!(root = lind_toml_parse(name, text, n, &error)))
		lind_die("%s:%u:%u: %s", path, error.line, error.column, error.text);
	free(text);
	return root;
}

struct lind_toml *lind_toml_is(struct lind_toml *v, enum lind_toml_type type)
{
	v->asked = true;
	if (type && v->type != type && v->key)
		lind_toml_die(v, "%s must be %s", v->key, types[type]);
	if (type && v->type != type)
		lind_toml_die(v, "expected %s", types[type]);
	return v;
}

struct lind_toml *lind_toml_get(struct lind_toml *table, const char *key, enum lind_toml_type type)
{
	struct lind_toml *v = lind_toml_first(table);

	while (v && strcmp(v->key, key))
		v = v->next;
	return v ? lind_toml_is(v, type) : NULL;
}

#define LONGEST_KEY 32

/* How many letters have to be put in, taken out or changed to get from one to the other. */
static size_t distance(const char *a, const char *b)
{
	size_t row[LONGEST_KEY + 1], length = strlen(b);

	for (size_t i = 0; i <= length; i++)
		row[i] = i;
	for (; *a; a++) {
		size_t before = row[0]++;

		for (size_t i = 1; i <= length; i++) {
			size_t least = before + (*a != b[i - 1]);

			before = row[i];
			least = before + 1 < least ? before + 1 : least;
			row[i] = row[i - 1] + 1 < least ? row[i - 1] + 1 : least;
		}
	}
	return row[length];
}

/* A key that nobody asks for, and that looks as if this one was meant. */
static const struct lind_toml *mistyped(struct lind_toml *table, const char *key)
{
	const struct lind_toml *v = lind_toml_first(table);

	while (
	    v && (v->asked || strlen(key) > LONGEST_KEY || strlen(v->key) > LONGEST_KEY || distance(v->key, key) > 2))
		v = v->next;
	return v;
}

struct lind_toml *lind_toml_need(struct lind_toml *table, const char *key, enum lind_toml_type type)
{
	struct lind_toml *v = lind_toml_get(table, key, type);
	const struct lind_toml *meant = v ? NULL : mistyped(table, key);

	if (meant)
		lind_toml_die(meant, "unknown key '%s': is '%s' meant?", meant->key, key);
	if (!v)
		lind_toml_die(table, "%s is missing", key);
	return v;
}

const char *lind_toml_string(struct lind_toml *table, const char *key, const char *otherwise)
{
	struct lind_toml *v = lind_toml_get(table, key, LIND_TOML_STRING);

	return v ? v->string : otherwise;
}

bool lind_toml_bool(struct lind_toml *table, const char *key, bool otherwise)
{
	struct lind_toml *v = lind_toml_get(table, key, LIND_TOML_BOOL);

	return v ? v->truth : otherwise;
}

int64_t lind_toml_integer(struct lind_toml *table, const char *key, int64_t min, int64_t max, int64_t otherwise)
{
	struct lind_toml *v = lind_toml_get(table, key, LIND_TOML_INTEGER);

	if (!v)
		return otherwise;
	if (v->wide || v->integer < min || v->integer > max)
		lind_toml_die(v, "%s must be from %lld to %lld", key, (long long)min, (long long)max);
	return v->integer;
}

double lind_toml_number(struct lind_toml *table, const char *key, double min, double max, double otherwise)
{
	struct lind_toml *v = lind_toml_get(table, key, 0);
	double number;

	if (!v)
		return otherwise;
	if (v->type == LIND_TOML_INTEGER)
		number = v->wide ? (double)(uint64_t)v->integer : (double)v->integer;
	else
		number = lind_toml_is(v, LIND_TOML_FLOAT)->number;
	if (!(number >= min && number <= max))
		lind_toml_die(v, "%s must be from %g to %g", key, min, max);
	return number;
}

struct lind_toml *lind_toml_first(struct lind_toml *v)
{
	return v && (v->type == LIND_TOML_TABLE || v->type == LIND_TOML_ARRAY) ? v->first : NULL;
}

void lind_toml_no_others(struct lind_toml *table)
{
	for (struct lind_toml *v = lind_toml_first(table); v; v = v->next) {
		if (v->key && !v->asked)
			lind_toml_die(v, "unknown key '%s'", v->key);
		lind_toml_no_others(v);
	}
}
