/* snapshot, rollback, fork, ls, log, lower. */
#include "failed.h"
#include "verb.h"
#include "git.h"
#include "print.h"
#include "report.h"
#include "../state/layers.h"
#include <errno.h>
#include <lind/options.h>
#include <lind/text.h>
#include <stdlib.h>
#include <string.h>

/* Names are typed, and stand in lists: one word of letters, digits and a few more. */
static bool is_name(const char *name)
{
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";

	if (*name && *name != '-' && strlen(name) < 64 && strspn(name, allowed) == strlen(name))
		return true;
	lind_log("'%s': a name has up to 63 letters, digits, dots, dashes and underscores", name);
	return false;
}

static int said(const struct store *store, int r, const char *name)
{
	if (r == -EEXIST)
		lind_log("there is a '%s' already", name);
	else if (r == -ENOENT)
		lind_log("no snapshot '%s'", name);
	else if (r)
		return verb_failed(store, r);
	return r ? 1 : 0;
}

/* The same, and to programs the name of the snapshot. */
static int done(const struct store *store, int r, const struct verb_options *options)
{
	int status = said(store, r, options->words[0]);

	if (!status && options->json)
		report_snapshot(options->words[0]);
	return status;
}

int verb_snapshot(struct store *store, const struct verb_options *options)
{
	return is_name(options->words[0]) ? done(store, store_snapshot(store, options->words[0]), options) : 1;
}

int verb_rollback(struct store *store, const struct verb_options *options)
{
	return done(store, store_rollback(store, options->words[0]), options);
}

int verb_fork(struct store *store, const struct verb_options *options)
{
	return is_name(options->words[0]) ? said(store, store_fork(store, options->words[0]), options->words[0]) : 1;
}

struct known {
	int64_t layer, parent;
	char *snapshot, *head;
	struct timespec made;
};

struct list {
	struct known *known;
	size_t count;
};

static int keep(void *to, const struct store_layer *layer)
{
	struct list *list = to;
	struct known *more = realloc(list->known, (list->count + 1) * sizeof *more);

	if (!more)
		return -ENOMEM;
	list->known = more;
	more[list->count++] =
	    (struct known){ layer->layer, layer->parent, layer->snapshot ? strdup(layer->snapshot) : NULL,
		    layer->head ? strdup(layer->head) : NULL, layer->made };
	return 0;
}

static void print_line(unsigned depth, const char *name, const char *what, struct timespec made)
{
	char text[32];
	struct tm tm;

	strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", gmtime_r(&made.tv_sec, &tm));
	printf("%*s%-*s %s %s\n", (int)(2 * depth), "" /* ours */, depth < 12 ? (int)(24 - 2 * depth) : 1,
	    lind_shown(name), text /* ours */, lind_shown(what));
}

static const char *head_on(const char *snapshot)
{
	static char text[80];

	snprintf(text, sizeof text, snapshot ? "head, on %s" : "head", snapshot);
	return text;
}

static bool is_first(const struct list *list, size_t i)
{
	return !i || list->known[i - 1].layer != list->known[i].layer;
}

/* Prints the layers and heads above a layer, indented where there are several. Children have
 * greater numbers than their parents: each is met once. */
static void print_tree(const struct list *list, int64_t parent, const char *below, unsigned depth)
{
	unsigned children = 0;

	for (size_t i = 0; i < list->count; i++)
		children += list->known[i].parent == parent && is_first(list, i);
	for (size_t i = 0; i < list->count; i++) {
		const struct known *at = &list->known[i];
		unsigned deeper = depth + (children > 1);

		if (at->parent != parent || !is_first(list, i) || at->layer <= parent)
			continue;
		if (at->snapshot)
			print_line(deeper, at->snapshot, "snapshot", at->made);
		for (size_t j = i; j < list->count && list->known[j].layer == at->layer; j++)
			if (list->known[j].head)
				print_line(deeper, list->known[j].head, head_on(at->snapshot ? at->snapshot : below),
				    at->made);
		print_tree(list, at->layer, at->snapshot ? at->snapshot : below, deeper);
	}
}

int verb_ls(struct store *store, const struct verb_options *options)
{
	struct list list = { 0 };
	int r = store_layers(store, keep, &list);

	(void)options;
	if (r)
		return verb_failed(store, r);
	print_tree(&list, 0, NULL, 0);
	return 0;
}

/* The output of the log: options, and the objects of one command of git, until all are known. */
struct printed {
	const struct verb_options *options;
	struct timespec at;
	char *path, *command;
	size_t length, objects;
};

static void print_time(const struct timespec *at, char kind)
{
	char text[32];
	struct tm tm;

	strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", gmtime_r(&at->tv_sec, &tm));
	printf("%s %c ", text /* ours */, kind >= 'A' && kind <= 'Z' ? kind : '?');
}

static void print_objects(struct printed *to)
{
	if (to->objects) {
		print_time(&to->at, 'A');
		git_print_objects(to->path, to->length, " (", to->objects);
		printf(")  %s\n", lind_shown(to->command));
	}
	free(to->path);
	free(to->command);
	to->path = to->command = NULL;
	to->objects = 0;
}

/* Whether the line is counted among the objects of a command. */
static bool is_of_objects(struct printed *to, const struct store_log_line *line)
{
	const char *path = line->kind == 'R' && line->other ? line->other : line->path,
		   *command = line->command ? line->command : "";
	size_t length = line->kind == 'A' || line->kind == 'R' ? git_objects(path) : 0;

	if (!length)
		return false;
	if (to->path && (length != to->length || strncmp(path, to->path, length) || strcmp(command, to->command)))
		print_objects(to);
	if (!to->path && (!(to->path = strdup(path)) || !(to->command = strdup(command))))
		return false;
	to->length = length;
	to->at = line->at;
	/* A directory of objects has a name of two digits. */
	to->objects += strlen(path) > length + 3;
	return true;
}

static int print_log(void *arg, const struct store_log_line *line)
{
	struct printed *to = arg;

	if (verb_is_excluded(to->options, line->path, true) &&
	    (!line->other || verb_is_excluded(to->options, line->other, true)))
		return 0;
	if (is_of_objects(to, line))
		return 0;
	print_objects(to);
	print_time(&line->at, line->kind);
	verb_print_name("", line->path);
	if (line->other) {
		printf(" -> ");
		verb_print_name("", line->other);
	}
	printf("  %s\n", line->command ? lind_shown(line->command) : "");
	return 0;
}

int verb_log(struct store *store, const struct verb_options *options)
{
	struct printed to = { .options = options };
	int r = store_log_lines(store, print_log, &to);

	print_objects(&to);
	return r ? verb_failed(store, r) : 0;
}

int verb_lower(struct store *store, const struct verb_options *options)
{
	char *lower = store_lower(store);

	(void)options;
	if (!lower)
		return verb_failed(store, -EIO);
	/* A path may have line feeds. */
	printf("%llu %s%c", (unsigned long long)store_lower_ino(store), lower /* read by lind-boot */, 0);
	free(lower);
	return 0;
}
