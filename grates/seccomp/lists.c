/*
 * A policy as three lists, by options: calls, paths, and programs. It is for who makes a line of
 * grates; who wants to say more writes a file.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "seccomp.h"
#include "strace.h"

/* Patterns of one option. */
struct list {
	const char **texts;
	size_t count;
	bool given;
};

static struct list paths, programs;
static bool calls_given;
static bool named[NUMBERS];

const char *add_call_list(const char *value)
{
	char *copy = strdup(value), *save = NULL;

	if (!copy)
		return "out of memory";
	calls_given = true;
	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		const struct lind_syscall *row = call_named(word);

		if (!row || row->nr >= NUMBERS)
			return "contains a name that is not a call";
		named[row->nr] = true;
	}
	free(copy);
	return NULL;
}

/* An empty text adds no path, but makes the list one that has been given. */
static const char *add(struct list *to, const char *value)
{
	const char **more;

	to->given = true;
	if (!*value)
		return NULL;
	if (*value != '/')
		return "a path must begin with /";
	if (!(more = realloc(to->texts, (to->count + 1) * sizeof *more)))
		return "out of memory";
	to->texts = more;
	more[to->count++] = value;
	return NULL;
}

const char *add_path_list(const char *value)
{
	return add(&paths, value);
}

const char *add_program_list(const char *value)
{
	return add(&programs, value);
}

bool has_lists(void)
{
	return calls_given || paths.given || programs.given;
}

static const struct patterns *patterns_of(const struct list *list, bool unnamed)
{
	struct patterns *p;

	if (!list->given)
		return NULL;
	if (!(p = calloc(1, sizeof *p)))
		lind_die("out of memory");
	*p = (struct patterns){ .of_paths = true, .unnamed = unnamed, .paths = list->texts, .path_count = list->count };
	return p;
}

static bool runs_programs(uint32_t nr)
{
	return nr == SYS_execve || nr == SYS_execveat || nr == SYS_spawn;
}

const struct rule *read_lists(void)
{
	static const struct rule allowed = { .action = ALLOW };
	static const struct rule otherwise = { .action = DENY, .error = EPERM, .where = "not among the calls" };
	static const struct rule no_file = { .action = DENY, .error = EACCES, .where = "not among the files" };
	static const struct rule no_program = { .action = DENY, .error = EACCES, .where = "not among the programs" };
	const struct patterns *files = patterns_of(&paths, true), *programs_only = patterns_of(&programs, false);
	const struct lind_syscall *row;

	for (size_t i = 0; (row = lind_syscall_at(i)); i++) {
		const struct patterns *of = runs_programs(row->nr) ? programs_only : has_path(row) ? files : NULL;

		if (row->nr >= NUMBERS || (calls_given && !named[row->nr]))
			continue;
		add_step(row->nr, &allowed, NULL, 0, of);
		if (of)
			add_step(row->nr, of == files ? &no_file : &no_program, NULL, 0, NULL);
	}
	return &otherwise;
}
