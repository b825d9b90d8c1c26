/* Policies in TOML. */
#include <fcntl.h>
#include <lind/config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "seccomp.h"
#include "strace.h"

#define MAX_TESTS 12

/* One test as it is written: by the name of an argument, which other calls of the family may
 * have elsewhere. */
struct test {
	char name[32];   /* of the argument, or its place */
	struct lind_config *value;
};

static int file_error;

static void *array_of(size_t count, size_t size)
{
	void *array = calloc(count ? count : 1, size);

	if (!array)
		lind_die("out of memory");
	return array;
}

static enum action read_action(struct lind_config *v)
{
	static const char *const names[] = { "allow", "log", "deny", "kill" };

	for (int i = 0; i < 4; i++)
		if (!strcmp(v->string, names[i]))
			return (enum action)i;
	lind_config_die(v, "'%s' is not allow, deny, kill or log", v->string);
}

static int read_errno(struct lind_config *table, int otherwise)
{
	struct lind_config *v = lind_config_get(table, "errno", 0);
	int error;

	if (!v)
		return otherwise;
	if (v->type == LIND_CONFIG_INTEGER)
		return (int)lind_config_integer(table, "errno", 1, 4095, 1);
	if (!(error = lind_errno_named(lind_config_is(v, LIND_CONFIG_STRING)->string)))
		lind_config_die(v, "'%s' is not an error", v->string);
	return error;
}

/* A value as the kernel takes it: extended to 64 bits by its sign. */
static uint64_t read_value(struct lind_config *v, const struct lind_param *param, const struct condition *c)
{
	uint64_t value = 0;

	v->asked = true;
	if (v->type == LIND_CONFIG_STRING && !value_named(v->string, param, &value))
		lind_config_die(v, "'%s' is not a value of %s", v->string, param->name);
	if (v->type == LIND_CONFIG_INTEGER)
		value = (uint64_t)v->integer;
	else if (v->type != LIND_CONFIG_STRING)
		lind_config_die(v, "expected a number, or a name in quotes");
	if (c->narrow && (int64_t)value != (int32_t)value && value != (uint32_t)value)
		lind_config_die(v, "%s has 32 bits", param->name);
	return taken(&(struct condition){ .narrow = c->narrow, .has_sign = c->has_sign }, value);
}

/*
 * The flags that libc adds to those of open say nothing about the file: programs set one of these
 * themselves, or none. A rule that names them means them.
 */
static uint32_t ignored(const struct lind_param *param, uint64_t named)
{
	return param->names && !strcmp(param->names->type, "OpenFlags") ? (O_LARGEFILE | O_CLOEXEC) & ~(uint32_t)named
									: 0;
}

static void read_set(struct condition *c, struct lind_config *array, const struct lind_param *param)
{
	uint64_t *values = array_of(array->count, sizeof *values);
	uint64_t all = 0;
	size_t n = 0;

	for (struct lind_config *v = array->first; v; v = v->next)
		all |= values[n++] = read_value(v, param, c);
	c->ignored = ignored(param, all);
	c->op = ONE_OF;
	c->a = add_values(values, n);
	c->b = n;
	free(values);
}

static void read_one(struct condition *c, struct lind_config *v, const struct lind_param *param)
{
	uint64_t value;

	v->asked = true;
	if (v->type == LIND_CONFIG_ARRAY)
		read_set(c, v, param);
	else {
		value = read_value(v, param, c);
		c->ignored = ignored(param, value);
		set_within(c, value, value);
	}
}

/* { mask, value }, { all }, { none }, { any }: the bits of an argument. */
static bool read_bits(struct condition *c, struct lind_config *table, const struct lind_param *param)
{
	static const char *const names[] = { "mask", "all", "none", "any" };
	struct lind_config *v, *equal;

	for (int i = 0; i < 4; i++)
		if ((v = lind_config_get(table, names[i], 0))) {
			c->op = MASKED;
			c->a = read_value(v, param, c);
			if (c->narrow)
				c->a = (uint32_t)c->a;
			c->b = i == 1 ? c->a : 0;
			c->negated = i == 3;
			equal = i ? NULL : lind_config_need(table, "value", 0);
			if (equal)
				c->b = read_value(equal, param, c) & (c->narrow ? UINT32_MAX : UINT64_MAX);
			if (c->b & ~c->a)
				lind_config_die(table, "value has bits outside of mask: this never holds");
			return true;
		}
	return false;
}

static struct condition read_test(struct lind_config *v, const struct lind_param *param, unsigned arg)
{
	struct condition c = compare(param, arg);
	struct lind_config *low, *high, *not;

	v->asked = true;
	if (v->type != LIND_CONFIG_TABLE) {
		read_one(&c, v, param);
		return c;
	}
	c.narrow = lind_config_integer(v, "bits", 32, 64, c.narrow ? 32 : 64) == 32;
	c.has_sign = lind_config_bool(v, "signed", c.has_sign);
	low = lind_config_get(v, "min", 0);
	high = lind_config_get(v, "max", 0);
	if ((not = lind_config_get(v, "not", 0))) {
		read_one(&c, not, param);
		c.negated = true;
	} else if (low || high) {
		uint64_t top = c.has_sign ? INT64_MAX : UINT64_MAX;
		uint64_t from = low ? read_value(low, param, &c) : ~top, to = high ? read_value(high, param, &c) : top;

		if (c.has_sign ? (int64_t)from > (int64_t)to : from > to)
			lind_config_die(v, "min is larger than max");
		set_within(&c, from, to);
	} else if (!read_bits(&c, v, param))
		lind_config_die(v, "expected mask and value, all, none, any, min, max or not");
	return c;
}

static int place_of(const struct lind_syscall *row, const char *name)
{
	for (int i = 0; i < row->count; i++)
		if (!strcmp(row->args[i].name, name))
			return i;
	return name[0] >= '0' && name[0] < '0' + row->count && !name[1] ? name[0] - '0' : -1;
}

/*
 * The tests for one call. For another call of the family (`named` is false) an argument is the one
 * of the same name; if it has none the test is left out, so that the rule applies in more cases and
 * not in fewer.
 */
static size_t read_tests(
    struct condition *to, const struct test *tests, size_t count, const struct lind_syscall *row, bool named)
{
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		int place = place_of(row, tests[i].name);

		if (place < 0 && named)
			lind_config_die(tests[i].value, "%s has no argument '%s'", row->name, tests[i].name);
		if (place >= 0 && (named || tests[i].name[0] > '9'))
			to[n++] = read_test(tests[i].value, &row->args[place], (unsigned)place);
	}
	return n;
}

/* A string or an array of strings. */
static struct lind_config *texts(struct lind_config *rule, const char *key, size_t *count)
{
	struct lind_config *v = lind_config_get(rule, key, 0);

	*count = v ? v->type == LIND_CONFIG_ARRAY ? v->count : 1 : 0;
	return v && v->type == LIND_CONFIG_ARRAY ? v->first : v;
}

static const struct patterns *read_patterns(struct lind_config *rule)
{
	struct patterns *p = array_of(1, sizeof *p);
	struct lind_config *paths = texts(rule, "path", &p->path_count),
			   *addresses = texts(rule, "address", &p->address_count), *v = paths;
	const char *wrong;

	/* An empty list matches no path at all, and not every path. */
	p->of_paths = lind_config_get(rule, "path", 0);
	p->of_addresses = lind_config_get(rule, "address", 0);
	if (!p->of_paths && !p->of_addresses)
		return free(p), NULL;
	p->paths = array_of(p->path_count, sizeof *p->paths);
	p->addresses = array_of(p->address_count, sizeof *p->addresses);
	for (size_t i = 0; i < p->path_count; i++, v = v->next) {
		if (lind_config_is(v, LIND_CONFIG_STRING)->string[0] != '/')
			lind_config_die(v, "a path must begin with /");
		p->paths[i] = v->string;
	}
	v = addresses;
	for (size_t i = 0; i < p->address_count; i++, v = v->next)
		if ((wrong = parse_address(lind_config_is(v, LIND_CONFIG_STRING)->string, &p->addresses[i])))
			lind_config_die(v, "'%s': %s", v->string, wrong);
	return p;
}

struct reading {
	const struct rule *rule;
	const struct patterns *patterns;
	struct test tests[MAX_TESTS];
	size_t test_count;
	struct lind_config *at;
};

static void add_call(const struct reading *r, const struct lind_syscall *row, bool named)
{
	struct condition conditions[MAX_TESTS];
	size_t n = read_tests(conditions, r->tests, r->test_count, row, named);
	const struct patterns *p = r->patterns;
	bool no_path = p && p->of_paths && !has_path(row), no_address = p && p->of_addresses && !has_address(row);

	if (named && (no_path || no_address))
		lind_config_die(r->at, "%s takes no %s", row->name, no_path ? "path" : "address to send to");
	/* A descriptor in place of a path: nothing says which file it is. */
	if (no_path || no_address)
		return;
	add_step(row->nr, r->rule, conditions, n, p);
}

/* A name, or %class. */
static void add_named(const struct reading *r, struct lind_config *v, bool exact)
{
	const char *name = lind_config_is(v, LIND_CONFIG_STRING)->string;
	const struct lind_syscall *row;
	bool found = false, perhaps = name[0] == '?';

	if (name[0] == '%') {
		for (size_t i = 0; (row = lind_syscall_at(i)); i++)
			if (!strcmp(row->area, name + 1)) {
				add_call(r, row, true);
				found = true;
			}
		if (!found)
			lind_config_die(v, "no such class of calls: %s", name);
		return;
	}
	if (!(row = call_named(name + perhaps))) {
		if (perhaps)
			return;
		lind_config_die(v, "no such call: %s (write '?%s' if it may be missing)", name, name);
	}
	add_call(r, row, true);
	if (!exact && r->rule->action >= DENY)
		for (const uint32_t *nr = also_reached_by(row->nr); *nr; nr++)
			if (*nr != row->nr)
				add_call(r, lind_syscall(*nr), false);
}

static const char *place(const struct lind_config *v, const char *what)
{
	char *text;

	if (asprintf(&text, "%s:%u%s", v->file, v->line, what) < 0)
		lind_die("out of memory");
	return text;
}

static void read_rule(struct lind_config *table)
{
	struct lind_config *calls = lind_config_need(table, "calls", LIND_CONFIG_ARRAY),
			   *args = lind_config_get(table, "args", LIND_CONFIG_TABLE);
	struct rule *rule = array_of(1, sizeof *rule);
	struct reading r = { .rule = rule, .at = calls };
	bool exact = lind_config_bool(table, "exact", false);

	rule->action = read_action(lind_config_need(table, "action", LIND_CONFIG_STRING));
	rule->error = read_errno(table, file_error);
	rule->where = place(table, "");
	rule->comment = lind_config_string(table, "comment", NULL);
	r.patterns = read_patterns(table);
	for (struct lind_config *v = lind_config_first(args); v; v = v->next) {
		if (r.test_count == MAX_TESTS || strlen(v->key) >= sizeof r.tests->name)
			lind_config_die(v, "too many arguments");
		strcpy(r.tests[r.test_count].name, v->key);
		r.tests[r.test_count++].value = v;
		v->asked = true;
	}
	if (!calls->count)
		lind_config_die(calls, "no call is named");
	for (struct lind_config *v = calls->first; v; v = v->next)
		add_named(&r, v, exact);
}

const struct rule *read_policy(const char *path)
{
	struct lind_config *file = lind_config_load(path), *v = lind_config_get(file, "default", LIND_CONFIG_STRING);
	struct rule *otherwise = array_of(1, sizeof *otherwise);

	file_error = read_errno(file, 1);
	otherwise->action = v ? read_action(v) : DENY;
	otherwise->error = file_error;
	otherwise->where = v ? place(v, " (default)") : place(file, " (no rule allows it)");
	for (v = lind_config_first(lind_config_get(file, "rule", LIND_CONFIG_ARRAY)); v; v = v->next)
		read_rule(lind_config_is(v, LIND_CONFIG_TABLE));
	lind_config_no_others(file);
	return otherwise;
}
