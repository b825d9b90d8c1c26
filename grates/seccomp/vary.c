/*
 * Turns values that were seen once into patterns for the next time: names that were made up,
 * processes' numbers and ports that the kernel chose will be others then, and many similar names
 * are not listed one by one.
 */
#include <ctype.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "learn.h"

#define FEW_NAMES 16
/* The first of the ports that Linux gives to those who ask for any. */
#define FIRST_FREE_PORT 32768
#define MADE_UP         6
/* The length of the prefix that programs put before a made-up name: tmp, sed. */
#define KEPT 3

/* Names of files that had to be new, of files that were made otherwise, and of files that went. */
static void *made, *came, *gone;
static bool free_ports;

static int by_text(const void *a, const void *b)
{
	return strcmp(a, b);
}

void tree_add(void **tree, const char *text)
{
	char *copy;

	if (tfind(text, tree, by_text))
		return;
	if (!(copy = strdup(text)) || !tsearch(copy, tree, by_text))
		lind_die("out of memory");
}

bool tree_has(void *const *tree, const char *text)
{
	return tfind(text, (void **)tree, by_text);
}

static char **walk_to;
static size_t walk_count;

static void visit(const void *node, VISIT which, int depth)
{
	(void)depth;
	if (which != postorder && which != leaf)
		return;
	if (walk_to)
		walk_to[walk_count] = *(char *const *)node;
	walk_count++;
}

size_t tree_list(void *tree, char ***list)
{
	walk_to = NULL;
	walk_count = 0;
	twalk(tree, visit);
	if (!(*list = walk_to = calloc(walk_count + 1, sizeof **list)))
		lind_die("out of memory");
	walk_count = 0;
	twalk(tree, visit);
	return walk_count;
}

void name_made(const char *path)
{
	tree_add(&made, path);
}

void name_came(const char *path)
{
	tree_add(&came, path);
}

void name_removed(const char *path)
{
	if (tree_has(&made, path) || tree_has(&came, path))
		tree_add(&gone, path);
}

void free_port_bound(void)
{
	free_ports = true;
}

/* A pattern being made. */
struct growing {
	char *text;
	size_t length;
};

static void put(struct growing *to, char c)
{
	/* A character with a meaning in a pattern, or that a file cannot hold, is written as `?`. */
	to->text[to->length++] = c == '*' || c == '[' || c < ' ' || c > '~' || c == '"' || c == '\\' ? '?' : c;
}

/* Two stars would go over slashes. */
static void put_star(struct growing *to)
{
	if (!to->length || to->text[to->length - 1] != '*')
		to->text[to->length++] = '*';
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* Names that are made up as a whole are hexadecimal as a rule: those of contents, and UUIDs. */
static size_t kept_of(const char *word, size_t length)
{
	size_t hexadecimal = strspn(word, "0123456789abcdefABCDEF");

	if (hexadecimal >= length || length < KEPT + MADE_UP)
		return 0;
	for (size_t i = 0; i < KEPT; i++)
		if (!islower((unsigned char)word[i]))
			return 0;
	return KEPT;
}

/*
 * The last word of some length is what mkstemp and its like make up; numbers may be those of
 * processes. A shell's `>` does not ask for a new file, so words of such names are as often the
 * program's own: only their numbers are others.
 */
static void put_made_up(struct growing *to, const char *name, size_t length, bool as_new)
{
	size_t from = length, until = length, run;

	for (size_t i = 0; i < length && as_new; i += run ? run : 1) {
		for (run = 0; i + run < length && is_word(name[i + run]); run++)
			;
		if (run >= MADE_UP) {
			from = i + kept_of(name + i, run);
			until = i + run;
		}
	}
	for (size_t i = 0; i < length; i++)
		if ((i >= from && i < until) || isdigit((unsigned char)name[i]))
			put_star(to);
		else
			put(to, name[i]);
}

static bool is_number(const char *name, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (!isdigit((unsigned char)name[i]))
			return false;
	return length;
}

/* `numbered`: with numbers of names that came to be without having to be new. */
static void put_path(struct growing *to, const char *path, bool numbered)
{
	bool in_proc = !strncmp(path, "/proc/", 6);
	char *prefix = strdup(path);

	if (!prefix)
		lind_die("out of memory");
	for (const char *at = path; *at;) {
		size_t length = strcspn(at, "/");

		prefix[at + length - path] = 0;
		if (length && tree_has(&gone, prefix) && (numbered || tree_has(&made, prefix)))
			put_made_up(to, at, length, tree_has(&made, prefix));
		else if (in_proc && is_number(at, length))
			put_star(to);
		else
			for (size_t i = 0; i < length; i++)
				put(to, at[i]);
		if (at[length])
			put(to, '/');
		prefix[at + length - path] = path[at + length - path];
		at += length + !!at[length];
	}
	free(prefix);
}

static char *pattern_for(const char *thing, bool numbered)
{
	const char *colon = strrchr(thing, ':');
	struct growing to = { calloc(1, strlen(thing) + 16), 0 };

	if (!to.text)
		lind_die("out of memory");
	if (*thing == '/')
		put_path(&to, thing, numbered);
	else if (!strncmp(thing, "unix:", 5)) {
		memcpy(to.text, "unix:", 5);
		to.length = 5;
		put_path(&to, thing + 5, numbered);
	} else if (colon && free_ports && atoi(colon + 1) >= FIRST_FREE_PORT)
		snprintf(to.text, strlen(thing) + 16, "%.*s:%d-65535", (int)(colon - thing), thing, FIRST_FREE_PORT);
	else
		strcpy(to.text, thing);
	return to.text;
}

static int by_pattern(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort(struct patterns_found *p)
{
	size_t kept = 0;

	qsort(p->list, p->count, sizeof *p->list, by_pattern);
	for (size_t i = 0; i < p->count; i++)
		if (!kept || strcmp(p->list[kept - 1], p->list[i]))
			p->list[kept++] = p->list[i];
		else
			free(p->list[i]);
	p->count = kept;
}

/* A path in which the `nth` name from the end is `*`; NULL if it has not so many. */
static char *without(const char *path, unsigned nth)
{
	const char *end = path + strlen(path), *begin = end;
	char *text;

	for (;; nth--) {
		while (begin > path && begin[-1] != '/')
			begin--;
		if (!nth)
			break;
		if (begin <= path + 1)
			return NULL;
		end = --begin;
	}
	if (begin == end || asprintf(&text, "%.*s*%s", (int)(begin - path), path, end) < 0)
		return NULL;
	return text;
}

struct likeness {
	char *like;
	size_t of;
};

static int by_likeness(const void *a, const void *b)
{
	return strcmp(((const struct likeness *)a)->like, ((const struct likeness *)b)->like);
}

/* Many paths that differ in one name only are one pattern. */
static void fold(struct patterns_found *p, unsigned nth)
{
	struct likeness *like = calloc(p->count + 1, sizeof *like);
	size_t n = 0;

	if (!like)
		lind_die("out of memory");
	for (size_t i = 0; i < p->count; i++)
		if (p->list[i][0] == '/' && (like[n].like = without(p->list[i], nth)))
			like[n++].of = i;
	qsort(like, n, sizeof *like, by_likeness);
	for (size_t i = 0, run; i < n; i += run) {
		for (run = 1; i + run < n && !strcmp(like[i].like, like[i + run].like); run++)
			;
		for (size_t k = i; k < i + run && run > FEW_NAMES; k++) {
			char **to = &p->list[like[k].of];

			free(*to);
			if (!(*to = strdup(like[i].like)))
				lind_die("out of memory");
		}
	}
	for (size_t i = 0; i < n; i++)
		free(like[i].like);
	free(like);
	sort(p);
}

/* Names that are not among many have other numbers in the next run, if their files were made
 * without having to be new, and went again. */
static void put_numbers(struct patterns_found *p, char *const *things, size_t count)
{
	char **other = calloc(p->count + 1, sizeof *other);

	if (!other)
		lind_die("out of memory");
	for (size_t i = 0; i < count; i++) {
		char *plain = pattern_for(things[i], false), *numbered = pattern_for(things[i], true);
		char **found =
		    strcmp(plain, numbered) ? bsearch(&plain, p->list, p->count, sizeof *p->list, by_pattern) : NULL;

		free(plain);
		if (found && !other[found - p->list])
			other[found - p->list] = numbered;
		else
			free(numbered);
	}
	for (size_t i = 0; i < p->count; i++)
		if (other[i]) {
			free(p->list[i]);
			p->list[i] = other[i];
		}
	free(other);
	sort(p);
}

struct patterns_found patterns_for(void *things)
{
	struct patterns_found p;
	char **paths;
	size_t count = tree_list(things, &paths);

	p.count = tree_list(things, &p.list);
	for (size_t i = 0; i < p.count; i++)
		p.list[i] = pattern_for(p.list[i], false);
	sort(&p);
	for (unsigned nth = 0; nth < 4; nth++)
		fold(&p, nth);
	put_numbers(&p, paths, count);
	free(paths);
	return p;
}
