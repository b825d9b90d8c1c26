/*
 * Limits what clients use: processor time, time, memory, cages, threads, descriptors, bytes. The
 * option parsing, and which calls are handled: only those that some limit is about.
 */
#include <lind/config.h>
#include <lind/grate.h>
#include <lind/rules.h>
#include <stdio.h>
#include <string.h>
#include "bytes.h"
#include "clients.h"
#include "files.h"
#include "limits.h"
#include "memfile.h"
#include "memory.h"
#include "shared.h"
#include "watch.h"

/* LIMIT=AMOUNT, split. */
static const char *pair(const char *text, enum scope scope, const char *(*set)(enum scope, const char *, const char *))
{
	const char *equals = strchr(text, '=');
	char name[32];

	if (!equals || (size_t)(equals - text) >= sizeof name)
		return "must be LIMIT=AMOUNT";
	memcpy(name, text, (size_t)(equals - text));
	name[equals - text] = 0;
	return set(scope, name, equals + 1);
}

#define LIMIT(name, option) \
	static const char *option(const char *value) \
	{ \
		return set_limit(TREE, name, value); \
	}
LIMIT("cpu", set_cpu)
LIMIT("wall", set_wall)
LIMIT("memory", set_memory)
LIMIT("cages", set_cages)
LIMIT("threads", set_threads)
LIMIT("files", set_files)

/* [CLASS=]SIZE */
static const char *set_bytes(const char *value, const char *all)
{
	const char *equals = strchr(value, '=');
	char name[32];

	if (!equals)
		return set_limit(TREE, all, value);
	if ((size_t)(equals - value) > 16)
		return "must be SIZE or CLASS=SIZE; classes are file, network, pipe";
	strcpy(name, all);
	strcat(name, ".");
	strncat(name, value, (size_t)(equals - value));
	return set_limit(TREE, name, equals + 1);
}

static const char *set_read(const char *value)
{
	return set_bytes(value, "read");
}

static const char *set_write(const char *value)
{
	return set_bytes(value, "write");
}

static const char *set_each(const char *value)
{
	return pair(value, EACH, set_limit);
}

static const char *set_tree_rate(const char *value)
{
	return pair(value, TREE, set_rate);
}

static const char *set_each_rate(const char *value)
{
	return pair(value, EACH, set_rate);
}

LIND_SETS(set_report, wants_report = true)

static const char *action(enum scope scope, const char *name, const char *value)
{
	char text[80];

	(void)scope;
	if (!strcmp(name, "any"))
		return set_action(value);
	snprintf(text, sizeof text, "%s=%s", name, value);
	return set_action(text);
}

/* The amount of a limit as a plain number, in `text` if need be. */
static const char *plain(struct lind_config *v, const char *limit, char *text, size_t size)
{
	if (limit_is_time(limit))
		snprintf(text, size, "%llu", (unsigned long long)lind_config_time(v));
	else if (limit_is_bytes(limit))
		snprintf(text, size, "%llu", (unsigned long long)lind_config_bytes(v));
	else if (v->type == LIND_CONFIG_STRING)
		return v->string;
	else
		snprintf(text, size, "%lld", (long long)lind_config_is(v, LIND_CONFIG_INTEGER)->integer);
	return text;
}

/* A table of LIMIT = "AMOUNT" or a number. Keys with a dot are tables in TOML: read.file = "1M"
 * is read = { file = "1M" }. */
static void table(struct lind_config *at, const char *prefix, enum scope scope,
    const char *(*set)(enum scope, const char *, const char *))
{
	for (struct lind_config *v = lind_config_first(at); v; v = v->next) {
		char name[40], text[24];
		const char *wrong;

		snprintf(name, sizeof name, "%s%s%s", prefix, *prefix ? "." : "",
		    !strcmp(v->key, "all") && *prefix ? "" : v->key);
		if (*prefix && !strcmp(v->key, "all"))
			snprintf(name, sizeof name, "%s", prefix);
		v->asked = true;
		if (v->type == LIND_CONFIG_TABLE && !*prefix) {
			table(v, v->key, scope, set);
			continue;
		}
		if ((wrong = set(scope, name,
			 set == action ? lind_config_is(v, LIND_CONFIG_STRING)->string
				       : plain(v, name, text, sizeof text))))
			lind_config_die(v, "%s: %s", name, wrong);
	}
}

static const char *load(const char *path)
{
	struct lind_config *config = lind_config_load(path);

	table(lind_config_get(config, "tree", LIND_CONFIG_TABLE), "", TREE, set_limit);
	table(lind_config_get(config, "each", LIND_CONFIG_TABLE), "", EACH, set_limit);
	table(lind_config_get(config, "rate", LIND_CONFIG_TABLE), "", TREE, set_rate);
	table(lind_config_get(config, "each-rate", LIND_CONFIG_TABLE), "", EACH, set_rate);
	table(lind_config_get(config, "on-hit", LIND_CONFIG_TABLE), "", TREE, action);
	wants_report |= lind_config_bool(config, "report", false);
	lind_config_no_others(config);
	return NULL;
}

LIND_OPTION("-", "cpu", "time");
LIND_OPTION("-", "wall", "time");
LIND_OPTION("-", "memory", "bytes");
LIND_OPTION("-", "cages", "value");
LIND_OPTION("-", "threads", "value");
LIND_OPTION("-", "files", "value");
LIND_OPTION("-", "read-bytes", "=bytes");
LIND_OPTION("-", "write-bytes", "=bytes");
LIND_OPTION("-", "each", "=limit");
LIND_OPTION("-", "rate", "=limit");
LIND_OPTION("-", "each-rate", "=limit");
LIND_OPTION("-", "on-hit", "value");
LIND_OPTION("-", "config", "toml");
LIND_OPTION("-", "learn", "writes");
LIND_OPTION("-", "use", "updates");

static const struct lind_option options[] = {
	{ 0, "cpu", "TIME", "limit the processor time of all cages together", set_cpu },
	{ 0, "wall", "TIME", "limit the time since the start", set_wall },
	{ 0, "memory", "SIZE", "limit the memory that all cages have mapped", set_memory },
	{ 0, "cages", "N", "limit the cages at a time", set_cages },
	{ 0, "threads", "N", "limit the threads at a time", set_threads },
	{ 0, "files", "N", "limit the open descriptors at a time", set_files },
	{ 0, "read-bytes", "[CLASS=]SIZE", "limit the bytes read; classes: file, network, pipe", set_read },
	{ 0, "write-bytes", "[CLASS=]SIZE", "limit the bytes written", set_write },
	{ 0, "each", "LIMIT=AMOUNT", "limit each cage; read.file, write.pipe ...", set_each },
	{ 0, "rate", "LIMIT=SIZE", "limit the bytes a second of all cages: calls wait", set_tree_rate },
	{ 0, "each-rate", "LIMIT=SIZE", "limit the bytes a second of each cage", set_each_rate },
	{ 0, "on-hit", "[LIMIT=]ACTION", "at a limit, return errno:NAME, stop or kill", set_action },
	{ 0, "config", "FILE", "read limits from a TOML file", load },
	{ 0, "learn", "FILE", "write the highest use of each resource that can have a limit", set_learn },
	{ 0, "use", "FILE", "keep the use of each resource in FILE, as 14 numbers of 8 bytes, and its highest use",
	    set_use },
	{ 0, "report", NULL, "print the use of resources at the end", set_report },
	LIND_LIVE_OPTION,
};

static const struct lind_rules living = {
	.name = "resource",
	.options = options,
	.count = sizeof options / sizeof *options,
	.begin = limits_begin,
	.settle = limits_settle,
};

int main(int argc, char **argv)
{
	lind_options(
	    options, sizeof options / sizeof *options, "Limits the resources that programs use.", &argc, &argv);
	if (!any_limit() && !wants_report)
		lind_die("no limit is given: --help lists them");
	first_name = lind_base_name(argv[1]);
	/* The order counts: a part that is added later has the calls first. */
	bytes_begin();
	if (limited(FILES))
		files_begin();
	if (limited(MEMORY)) {
		memory_begins();
		/* Nobody's map says which cage a file's memory is of. */
		if (limits[EACH][MEMORY] != UNLIMITED)
			shared_begins();
		else
			memory_files_begin();
	}
	if (limited(CPU) || limited(WALL))
		lind_explain_note("a limit of time acts during any call");
	watch_begins();
	lind_rules_follow(&living);
	lind_grate_lifecycle(&lifecycle);
	return lind_grate_main(argc, argv);
}
