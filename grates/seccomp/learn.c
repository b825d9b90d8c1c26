/* --learn: which calls were made, and with which values of those arguments that are one of a list. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "seccomp.h"
#include "strace.h"

#define MAX_VALUES 16

bool learn_names;

static FILE *output;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool made[NUMBERS];

/* The values of one argument; more than there is room for are any. */
static struct seen {
	unsigned count;
	uint32_t values[MAX_VALUES];
} *seen[NUMBERS][6];

const char *set_learn(const char *path)
{
	output = fopen(path, "we");
	return output ? NULL : strerror(errno);
}

bool learning(void)
{
	return output;
}

static void note(struct seen **at, uint32_t value)
{
	struct seen *s = *at;

	if (!s && !(s = *at = calloc(1, sizeof *s)))
		lind_die("out of memory");
	for (unsigned i = 0; i < s->count && i < MAX_VALUES; i++)
		if (s->values[i] == value)
			return;
	if (s->count < MAX_VALUES)
		s->values[s->count] = value;
	s->count += s->count <= MAX_VALUES;
}

int64_t on_learned_call(const struct lind_call *c)
{
	const struct lind_syscall *row = syscall_of(c->nr);

	if (row && row->nr < NUMBERS) {
		pthread_mutex_lock(&lock);
		made[row->nr] = true;
		for (int i = 0; i < row->count && !learn_names; i++)
			if (row->args[i].kind == LIND_VALUE)
				note(&seen[row->nr][i], (uint32_t)c->args[i].value);
		pthread_mutex_unlock(&lock);
	}
	return lind_forward(c);
}

static bool any_value(uint32_t nr)
{
	for (int i = 0; i < 6; i++)
		if (seen[nr][i] && seen[nr][i]->count <= MAX_VALUES)
			return false;
	return true;
}

static void write_value(uint32_t value, const struct lind_names *names)
{
	for (const struct lind_name *row = names ? names->rows : NULL; row && row->name; row++)
		if (row->value == value) {
			fprintf(output, "\"%s\"", row->name);
			return;
		}
	fprintf(output, "%#x", (unsigned)value);
}

static void write_values(const struct lind_syscall *row)
{
	const char *between = "";

	fprintf(output, "\n[[rule]]\naction = \"allow\"\ncalls = [\"%s\"]\nargs = { ", row->name);
	for (int i = 0; i < row->count; i++) {
		const struct seen *s = seen[row->nr][i];

		if (!s || s->count > MAX_VALUES)
			continue;
		fprintf(output, "%s%s = [", between, row->args[i].name);
		for (unsigned k = 0; k < s->count; k++) {
			fputs(k ? ", " : "", output);
			write_value(s->values[k], row->args[i].names);
		}
		fputs("]", output);
		between = ", ";
	}
	fputs(" }\n", output);
}

/* Whether threads meet on a lock is chance: what libc does then is needed by a run that did not do it, too. */
static void add_chance(void)
{
	static const uint32_t calls[] = { SYS_futex, SYS_sched_yield };

	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		made[calls[i]] = true;
		for (int k = 0; k < 6; k++) {
			free(seen[calls[i]][k]);
			seen[calls[i]][k] = NULL;
		}
	}
}

void write_learned(void)
{
	const struct lind_syscall *row;
	const char *between = "\n[[rule]]\naction = \"allow\"\ncalls = [\n\t";
	size_t column = 8;

	pthread_mutex_lock(&lock);
	add_chance();
	fputs("# What one run needed; everything else is denied.\ndefault = \"deny\"\n", output);
	for (size_t i = 0; (row = syscall_at(i)); i++)
		if (row->nr < NUMBERS && made[row->nr] && any_value(row->nr)) {
			fputs(between, output);
			fprintf(output, "\"%s\"", row->name);
			column += strlen(row->name) + 4;
			between = column > 100 ? ",\n\t" : ", ";
			column = column > 100 ? 8 : column;
		}
	if (*between == ',')
		fputs(",\n]\n", output);
	for (size_t i = 0; (row = syscall_at(i)); i++)
		if (row->nr < NUMBERS && made[row->nr] && !any_value(row->nr))
			write_values(row);
	pthread_mutex_unlock(&lock);
	if (fclose(output))
		lind_log("what was learned could not be written: %s", strerror(errno));
	output = NULL;
}
