/* Settings from lind-boot, and the taking of values out of them. lind-boot makes the JSON, as
 * lind-boot/src/plan/document.rs says. */
#include <errno.h>
#include <lind/cJSON.h>
#include <lind/config.h>
#include <lind/raw.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const types[] = { "?", "a table", "an array", "a string", "an integer", "a number",
	"true or false" };

void lind_config_die(const struct lind_config *at, const char *format, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	lind_die("%s:%u:%u: %s", at->file, at->line, at->column, text);
}

/* A program that starts a grate itself can hand it anything. */
static const cJSON *part(const char *file, const cJSON *node, int at)
{
	const cJSON *part = cJSON_GetArrayItem(node, at);

	if (!part)
		lind_die("%s: is not a file of settings that lind-boot has read", file);
	return part;
}

static int64_t amount(const cJSON *number)
{
	return cJSON_IsString(number) ? strtoll(number->valuestring, NULL, 10) : -1;
}

static struct lind_config *value_of(const char *file, const char *key, const cJSON *node);

static void add_values(struct lind_config *to, const cJSON *values)
{
	const cJSON *one;

	cJSON_ArrayForEach(one, values)
	{
		bool is_table = to->type == LIND_CONFIG_TABLE;
		const char *key = is_table ? cJSON_GetStringValue(part(to->file, one, 0)) : NULL;
		struct lind_config *v = value_of(to->file, key, is_table ? part(to->file, one, 1) : one);

		if (to->last)
			to->last->next = v;
		else
			to->first = v;
		to->last = v;
		to->count++;
	}
}

static void read_scalar(struct lind_config *v, const cJSON *node)
{
	const char *text = cJSON_GetStringValue(part(v->file, node, 3));

	if (!text)
		lind_die("%s: is not a file of settings that lind-boot has read", v->file);
	v->bytes = amount(part(v->file, node, 4));
	v->time = amount(part(v->file, node, 5));
	if (v->type == LIND_CONFIG_STRING)
		v->string = text;
	else if (v->type == LIND_CONFIG_FLOAT)
		v->number = strtod(text, NULL);
	else {
		v->integer = *text == '-' ? strtoll(text, NULL, 10) : (int64_t)strtoull(text, NULL, 10);
		v->wide = *text != '-' && v->integer < 0;
	}
}

static struct lind_config *value_of(const char *file, const char *key, const cJSON *node)
{
	static const char *const names[] = { "?", "table", "array", "string", "integer", "float", "bool" };
	const char *type = cJSON_GetStringValue(part(file, node, 2));
	struct lind_config *v = calloc(1, sizeof *v);

	if (!v)
		lind_die("%s: out of memory", file);
	*v = (struct lind_config){ .file = file, .key = key, .bytes = -1, .time = -1 };
	v->line = (unsigned)part(file, node, 0)->valueint;
	v->column = (unsigned)part(file, node, 1)->valueint;
	for (enum lind_config_type i = LIND_CONFIG_TABLE; type && i <= LIND_CONFIG_BOOL; i++)
		if (!strcmp(type, names[i]))
			v->type = i;
	if (v->type == LIND_CONFIG_TABLE || v->type == LIND_CONFIG_ARRAY)
		add_values(v, part(file, node, 3));
	else if (v->type == LIND_CONFIG_BOOL)
		v->truth = cJSON_IsTrue(part(file, node, 3));
	else
		read_scalar(v, node);
	return v;
}

struct lind_config *lind_config_load(const char *value)
{
	FILE *f = lind_read_file(value);
	const char *name = lind_file_name(value);
	char *text = NULL;
	size_t room = 0;

	if (!f)
		lind_die("%s: %s", name, strerror(errno));
	if (getdelim(&text, &room, 0, f) < 0)
		lind_die("%s: %s", name, strerror(ferror(f) ? errno : ENODATA));
	fclose(f);
	/* Values point into what is parsed, which is kept. */
	return value_of(name, NULL, cJSON_Parse(text));
}

struct lind_config *lind_config_is(struct lind_config *v, enum lind_config_type type)
{
	v->asked = true;
	if (type && v->type != type && v->key)
		lind_config_die(v, "%s must be %s", v->key, types[type]);
	if (type && v->type != type)
		lind_config_die(v, "expected %s", types[type]);
	return v;
}

struct lind_config *lind_config_get(struct lind_config *table, const char *key, enum lind_config_type type)
{
	struct lind_config *v = lind_config_first(table);

	while (v && strcmp(v->key, key))
		v = v->next;
	return v ? lind_config_is(v, type) : NULL;
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
static const struct lind_config *mistyped(struct lind_config *table, const char *key)
{
	const struct lind_config *v = lind_config_first(table);

	while (
	    v && (v->asked || strlen(key) > LONGEST_KEY || strlen(v->key) > LONGEST_KEY || distance(v->key, key) > 2))
		v = v->next;
	return v;
}

struct lind_config *lind_config_need(struct lind_config *table, const char *key, enum lind_config_type type)
{
	struct lind_config *v = lind_config_get(table, key, type);
	const struct lind_config *meant = v ? NULL : mistyped(table, key);

	if (meant)
		lind_config_die(meant, "unknown key '%s': is '%s' meant?", meant->key, key);
	if (!v)
		lind_config_die(table, "%s is missing", key);
	return v;
}

const char *lind_config_string(struct lind_config *table, const char *key, const char *otherwise)
{
	struct lind_config *v = lind_config_get(table, key, LIND_CONFIG_STRING);

	return v ? v->string : otherwise;
}

bool lind_config_bool(struct lind_config *table, const char *key, bool otherwise)
{
	struct lind_config *v = lind_config_get(table, key, LIND_CONFIG_BOOL);

	return v ? v->truth : otherwise;
}

int64_t lind_config_integer(struct lind_config *table, const char *key, int64_t min, int64_t max, int64_t otherwise)
{
	struct lind_config *v = lind_config_get(table, key, LIND_CONFIG_INTEGER);

	if (!v)
		return otherwise;
	if (v->wide || v->integer < min || v->integer > max)
		lind_config_die(v, "%s must be from %lld to %lld", key, (long long)min, (long long)max);
	return v->integer;
}

double lind_config_number(struct lind_config *table, const char *key, double min, double max, double otherwise)
{
	struct lind_config *v = lind_config_get(table, key, 0);
	double number;

	if (!v)
		return otherwise;
	if (v->type == LIND_CONFIG_INTEGER)
		number = v->wide ? (double)(uint64_t)v->integer : (double)v->integer;
	else
		number = lind_config_is(v, LIND_CONFIG_FLOAT)->number;
	if (!(number >= min && number <= max))
		lind_config_die(v, "%s must be from %g to %g", key, min, max);
	return number;
}

static uint64_t amount_of(struct lind_config *v, int64_t amount, const char *form)
{
	v->asked = true;
	if (amount < 0)
		lind_config_die(v, "%s%smust be %s", v->key ? v->key : "", v->key ? " " : "", form);
	return (uint64_t)amount;
}

uint64_t lind_config_bytes(struct lind_config *v)
{
	return amount_of(v, v->bytes, "a size such as 64M, 1.5G");
}

uint64_t lind_config_time(struct lind_config *v)
{
	return amount_of(v, v->time, "a time such as 500ms, 10s, 2m");
}

struct lind_config *lind_config_first(struct lind_config *v)
{
	return v && (v->type == LIND_CONFIG_TABLE || v->type == LIND_CONFIG_ARRAY) ? v->first : NULL;
}

void lind_config_no_others(struct lind_config *table)
{
	for (struct lind_config *v = lind_config_first(table); v; v = v->next) {
		if (v->key && !v->asked)
			lind_config_die(v, "unknown key '%s'", v->key);
		lind_config_no_others(v);
	}
}
