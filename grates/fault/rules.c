/* Reading rules: CALL,...:KEY=VALUE,... on the command line, [[rule]] tables in TOML. */
#include <errno.h>
#include <lind/syscall_table.h>
#include <lind/config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "fault.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

struct rule rules[MOST_RULES];
unsigned rule_count;

struct shape shape_of(uint32_t nr)
{
	struct shape s = { -1, -1, -1, -1, false, false };
	const struct lind_syscall *row = lind_syscall(nr);

	for (int8_t at = 0; row && at < row->count; at++) {
		if (row->args[at].kind == LIND_FD && s.fd < 0)
			s.fd = at;
		if (row->args[at].kind == LIND_PATH && s.path < 0) {
			s.path = at;
			s.dir = at && row->args[at - 1].kind == LIND_DIRFD ? (int8_t)(at - 1) : -1;
		}
	}
	switch (nr) {
	case SYS_read:
	case SYS_write:
	case SYS_pread64:
	case SYS_pwrite64:
	case SYS_recvfrom:
	case SYS_sendto:
		s.length = 2;
		break;
	case SYS_readv:
	case SYS_writev:
	case SYS_preadv:
	case SYS_pwritev:
	case SYS_preadv2:
	case SYS_pwritev2:
		s.pieces = true;
		break;
	case SYS_sendmsg:
	case SYS_recvmsg:
		s.message = true;
		break;
	case SYS_sendfile:
		s.length = 3;
		break;
	case SYS_splice:
	case SYS_copy_file_range:
		s.length = 4;
		break;
	case SYS_getrandom:
		s.length = 1;
		break;
	}
	return s;
}

static bool refused(uint32_t nr)
{
	return nr == SYS_exit || nr == SYS_exit_group || nr == 15 || nr >= MOST_CALLS;
}

/* A name, %AREA of the table, %read or %write. */
static const char *add_calls(struct rule *r, const char *word)
{
	static const uint32_t reads[] = { SYS_read, SYS_pread64, SYS_readv, SYS_preadv, SYS_preadv2, SYS_recvfrom,
		SYS_recvmsg },
			      writes[] = { SYS_write, SYS_pwrite64, SYS_writev, SYS_pwritev, SYS_pwritev2, SYS_sendto,
				      SYS_sendmsg };
	const struct lind_syscall *row;
	bool found = false, any = false;

	for (size_t i = 0; i < COUNT(reads); i++)
		if (!strcmp(word, "%read") || !strcmp(word, "%write")) {
			uint32_t nr = word[1] == 'r' ? reads[i] : writes[i];

			r->calls[nr / 8] |= (uint8_t)(1 << nr % 8);
			found = true;
		}
	for (size_t i = 0; (row = lind_syscall_at(i)) && !(found && *word == '%'); i++) {
		if (*word == '%' ? strcmp(row->area, word + 1) : strcmp(row->name, word))
			continue;
		if (refused(row->nr)) {
			if (*word != '%')
				return "that call cannot fail";
			continue;
		}
		r->calls[row->nr / 8] |= (uint8_t)(1 << row->nr % 8);
		any = true;
	}
	found |= any;
	return found ? NULL : "no such call or class";
}

static const char *time_of(const char *text, const char **end, int64_t *nanos)
{
	char *after;
	double n = strtod(text, &after);
	bool part = !strncmp(after, "us", 2) || !strncmp(after, "ms", 2);
	double unit = !part ? 1e9 : *after == 'u' ? 1e3 : 1e6;

	if (after == text || !(n >= 0) || n * unit > 1e15)
		return "must be a time, such as 10ms, 1.5s, or 5ms..20ms";
	after += part ? 2 : *after == 's';
	*nanos = (int64_t)(n * unit);
	*end = after;
	return NULL;
}

static const char *set_delay(struct rule *r, const char *value)
{
	const char *end, *wrong = time_of(value, &end, &r->delay);

	if (wrong)
		return wrong;
	r->delay_to = r->delay;
	if (!strncmp(end, "..", 2) && (wrong = time_of(end + 2, &end, &r->delay_to)))
		return wrong;
	return *end || r->delay_to < r->delay || !r->delay_to ? "must be a time, such as 10ms, 1.5s, or 5ms..20ms"
							      : NULL;
}

static const char *set_short(struct rule *r, const char *value)
{
	char *end;
	unsigned long n = strtoul(value, &end, 10);

	if (*value < '0' || *value > '9' || !n || (*end == '%' && n > 99) || (*end && strcmp(end, "%")))
		return "must be a number of bytes, or a percentage from 1% to 99%";
	if (*end)
		r->short_percent = (unsigned)n;
	else
		r->short_to = n;
	return NULL;
}

static const char *set_number(uint64_t *to, const char *value, uint64_t least)
{
	const char *wrong = lind_number(value, to);

	return !wrong && *to < least ? "must be a number" : wrong;
}

static const char *set_kind(struct rule *r, const char *value)
{
	static const char *const names[] = { [FILE_KIND] = "file",
		[DIR_KIND] = "dir",
		[PIPE_KIND] = "pipe",
		[INET_KIND] = "inet",
		[UNIX_KIND] = "unix",
		[DEVICE_KIND] = "device",
		[OTHER_KIND] = "other" };

	for (size_t i = 1; i < COUNT(names); i++)
		if (!strcmp(names[i], value)) {
			r->kind = (enum kind)i;
			return NULL;
		}
	return "must be file, dir, pipe, inet, unix, device or other";
}

static const char *set_key(struct rule *r, const char *key, const char *value)
{
	char *end;

	if (!strcmp(key, "path"))
		return (r->path = strdup(value)) ? NULL : "out of memory";
	if (!strcmp(key, "program"))
		return (r->program = strdup(value)) ? NULL : "out of memory";
	if (!strcmp(key, "fd"))
		return set_kind(r, value);
	if (!strcmp(key, "skip"))
		return set_number(&r->skip, value, 0);
	if (!strcmp(key, "every"))
		return set_number(&r->every, value, 1);
	if (!strcmp(key, "times"))
		return set_number(&r->times, value, 1);
	if (!strcmp(key, "delay"))
		return set_delay(r, value);
	if (!strcmp(key, "short"))
		return set_short(r, value);
	if (!strcmp(key, "count")) {
		r->each = !strcmp(value, "each");
		return r->each || !strcmp(value, "all") ? NULL : "must be all or each";
	}
	if (!strcmp(key, "chance")) {
		r->chance = strtod(value, &end);
		return end == value || *end || !(r->chance >= 0 && r->chance <= 1) ? "must be from 0 to 1" : NULL;
	}
	if (!strcmp(key, "errno")) {
		r->error = lind_errno_named(value);
		return r->error ? NULL : "no such errno";
	}
	return "no such key; there are path, program, fd, skip, every, times, chance, count, errno, short, delay";
}

static struct rule *fresh(void)
{
	struct rule *r = &rules[rule_count];

	*r = (struct rule){ .every = 1, .times = UINT64_MAX, .chance = 1 };
	return r;
}

/* Everything that a finished rule has to have. */
static const char *finish(struct rule *r)
{
	bool fd = false, path = false, any = false;

	for (size_t i = 0; i < sizeof r->calls; i++)
		any |= r->calls[i];
	if (!any)
		return "names no call";
	if (!r->error && !r->delay_to && !r->short_to && !r->short_percent)
		return "has no effect: give it errno, short or delay";
	if (r->error && (r->short_to || r->short_percent))
		return "a call that fails cannot be short";
	for (uint32_t nr = 0; nr < MOST_CALLS; nr++) {
		struct shape s = shape_of(nr);

		if (!(r->calls[nr / 8] & 1 << nr % 8))
			continue;
		if ((r->short_to || r->short_percent) && s.length < 0 && !s.pieces && !s.message)
			return "short is for calls that read or write bytes";
		fd |= s.fd >= 0;
		path |= s.fd >= 0 || s.path >= 0;
	}
	if ((r->kind && !fd) || (r->path && !path))
		return "its calls have no descriptor or path that could match";
	rule_count++;
	return NULL;
}

static char wrong_text[200];

static const char *about(const char *what, const char *why)
{
	snprintf(wrong_text, sizeof wrong_text, "%.60s: %s", what, why);
	return wrong_text;
}

const char *rule_add(const char *text)
{
	char copy[512], *calls = copy, *keys, *word, *save = NULL;
	const char *wrong;
	struct rule *r;

	if (rule_count == MOST_RULES)
		return "too many rules";
	if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
		return "is too long";
	if (!(keys = strchr(copy, ':')))
		return "must be CALL,...:KEY=VALUE,...";
	*keys++ = 0;
	r = fresh();
	snprintf(r->text, sizeof r->text, "%s", text);
	for (word = strtok_r(calls, ",", &save); word; word = strtok_r(NULL, ",", &save))
		if ((wrong = add_calls(r, word)))
			return about(word, wrong);
	for (word = strtok_r(keys, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *value = strchr(word, '=');

		if (!value)
			return about(word, "must be KEY=VALUE");
		*value++ = 0;
		if ((wrong = set_key(r, word, value)))
			return about(word, wrong);
	}
	return finish(r);
}

static void load_rule(struct lind_config *table)
{
	struct lind_config *calls = lind_config_need(table, "call", LIND_CONFIG_ARRAY);
	struct rule *r = fresh();
	const char *wrong;
	size_t n;

	if (rule_count == MOST_RULES)
		lind_config_die(table, "too many rules");
	n = (size_t)snprintf(r->text, sizeof r->text, "%s:%u ", table->file, table->line);
	for (struct lind_config *v = lind_config_first(calls); v; v = v->next) {
		v->asked = true;
		if ((wrong = add_calls(r, lind_config_is(v, LIND_CONFIG_STRING)->string)))
			lind_config_die(v, "%s: %s", v->string, wrong);
		if (n < sizeof r->text)
			n += (size_t)snprintf(r->text + n, sizeof r->text - n, "%s%s",
			    v == lind_config_first(calls) ? "" : ",", v->string);
	}
	for (struct lind_config *v = lind_config_first(table); v; v = v->next) {
		char number[40];

		if (!strcmp(v->key, "call"))
			continue;
		v->asked = true;
		if (v->type == LIND_CONFIG_INTEGER)
			snprintf(number, sizeof number, "%lld", (long long)v->integer);
		else if (v->type == LIND_CONFIG_FLOAT)
			snprintf(number, sizeof number, "%.17g", v->number);
		else if (v->type != LIND_CONFIG_STRING)
			lind_config_die(v, "must be a text or a number");
		if ((wrong = set_key(r, v->key, v->type == LIND_CONFIG_STRING ? v->string : number)))
			lind_config_die(v, "%s: %s", v->key, wrong);
	}
	if ((wrong = finish(r)))
		lind_config_die(table, "%s", wrong);
}

const char *rules_load(const char *path)
{
	struct lind_config *config = lind_config_load(path), *s = lind_config_get(config, "seed", LIND_CONFIG_INTEGER);

	if (s)
		seed = (uint64_t)s->integer;
	for (struct lind_config *rule = lind_config_first(lind_config_get(config, "rule", LIND_CONFIG_ARRAY)); rule;
	    rule = rule->next)
		load_rule(lind_config_is(rule, LIND_CONFIG_TABLE));
	lind_config_no_others(config);
	return NULL;
}
