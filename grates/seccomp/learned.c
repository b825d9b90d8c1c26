/* --learn: writes the policy that allows what was noted, and nothing else. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "learn.h"
#include "strace.h"

static FILE *output;

/* A rule to be written: a group with its things as patterns. */
struct entry {
	struct set args[6];
	struct patterns_found patterns;
	bool anything;
};

static bool few(const struct set *s)
{
	return s->count && s->count <= FEW_VALUES;
}

static bool same_set(const struct set *a, const struct set *b)
{
	if (few(a) != few(b) || !few(a))
		return few(a) == few(b);
	if (a->count != b->count)
		return false;
	for (unsigned i = 0; i < a->count; i++)
		for (unsigned k = 0; a->values[i] != b->values[k]; k++)
			if (k + 1 == b->count)
				return false;
	return true;
}

static bool same_patterns(const struct entry *a, const struct entry *b)
{
	if (a->anything || b->anything)
		return a->anything == b->anything;
	if (a->patterns.count != b->patterns.count)
		return false;
	for (size_t i = 0; i < a->patterns.count; i++)
		if (strcmp(a->patterns.list[i], b->patterns.list[i]))
			return false;
	return true;
}

/* Two rules that differ in the values of one argument are one. */
static bool unite(struct entry *a, const struct entry *b)
{
	int differs = -1;

	if (!same_patterns(a, b))
		return false;
	for (int i = 0; i < 6; i++)
		if (!same_set(&a->args[i], &b->args[i])) {
			if (differs >= 0)
				return false;
			differs = i;
		}
	for (unsigned v = 0; differs >= 0 && v < b->args[differs].count && v < FEW_VALUES; v++)
		add_value(&a->args[differs], b->args[differs].values[v]);
	return true;
}

static unsigned entries_of(const struct learned *l, struct entry *to)
{
	unsigned n = l->count;
	bool again = true;

	for (unsigned i = 0; i < n; i++) {
		to[i] =
		    (struct entry){ .patterns = patterns_for(l->groups[i].things), .anything = l->groups[i].anything };
		memcpy(to[i].args, l->groups[i].args, sizeof to[i].args);
	}
	while (again) {
		again = false;
		for (unsigned i = 0; i < n; i++)
			for (unsigned k = i + 1; k < n; k++)
				if (unite(&to[i], &to[k])) {
					to[k--] = to[--n];
					again = true;
				}
	}
	return n;
}

/* Writes the names whose bits make up a value, or some of them. Returns the remaining bits. */
static uint32_t write_flags(uint32_t value, const struct lind_name *rows)
{
	uint32_t left = value;
	const char *between = "\"";

	for (const struct lind_name *row = rows; left && row->name; row++)
		if (row->value && (left & row->value) == row->value) {
			fprintf(output, "%s%s", between, row->name);
			between = "|";
			left &= ~row->value;
		}
	return left;
}

/* NAME, or NAME|NAME for flags, or a number. */
static void write_value(uint32_t value, const struct lind_param *param)
{
	const struct lind_names *names = param->kind == LIND_SIGNAL ? &lind_names_Signals : param->names;
	uint32_t left = value;

	for (const struct lind_name *row = names ? names->rows : NULL; row && row->name; row++) {
		if (row->value == value) {
			fprintf(output, "\"%s\"", row->name);
			return;
		}
		if (param->kind == LIND_FLAGS && (left & row->value) == row->value)
			left &= ~row->value;
	}
	if (param->kind == LIND_FLAGS && value && !left) {
		write_flags(value, names->rows);
		fputc('"', output);
	} else
		fprintf(output, param->kind == LIND_MODE ? "0o%o" : "%#x", (unsigned)value);
}

static void write_args(const struct lind_syscall *row, const struct set *args)
{
	const char *between = "args = { ";

	for (int i = 0; i < row->count; i++) {
		if (!few(&args[i]))
			continue;
		fprintf(output, "%s%s = %s", between, row->args[i].name, args[i].count > 1 ? "[" : "");
		for (unsigned k = 0; k < args[i].count; k++) {
			fputs(k ? ", " : "", output);
			write_value(args[i].values[k], &row->args[i]);
		}
		fputs(args[i].count > 1 ? "]" : "", output);
		between = ", ";
	}
	if (*between == ',')
		fputs(" }\n", output);
}

/* No path at all: what was tried led nowhere, and does so again. */
static void write_patterns(const struct lind_syscall *row, const struct entry *e)
{
	const char *between = "\n\t";

	if (e->anything)
		return;
	fprintf(output, "%s = [", has_path(row) ? "path" : "address");
	for (size_t i = 0; i < e->patterns.count; i++) {
		fprintf(output, "%s\"%s\"", between, e->patterns.list[i]);
		between = ",\n\t";
	}
	fputs(e->patterns.count ? ",\n]\n" : "]\n", output);
}

static void write_call(const struct lind_syscall *row, const struct learned *l)
{
	static struct entry entries[FEW_GROUPS];
	unsigned n = entries_of(l, entries);

	if (!n)
		entries[n++] = (struct entry){ 0 };
	for (unsigned i = 0; i < n; i++) {
		fprintf(output, "\n[[rule]]\naction = \"allow\"\ncalls = [\"%s\"]\n", row->name);
		write_args(row, entries[i].args);
		if (l->looks)
			write_patterns(row, &entries[i]);
	}
}

/* Nothing is said about it but its name. */
static bool plain(const struct learned *l)
{
	struct entry entries[FEW_GROUPS];
	unsigned n;

	if (l->looks)
		return false;
	n = entries_of(l, entries);
	for (int i = 0; n == 1 && i < 6; i++)
		if (few(&entries[0].args[i]))
			return false;
	return n < 2;
}

static void write_plain(struct learned *const *of)
{
	const char *between = "\n[[rule]]\naction = \"allow\"\ncalls = [\n\t";
	const struct lind_syscall *row;
	size_t column = 8;

	for (size_t i = 0; (row = lind_syscall_at(i)); i++) {
		if (row->nr >= NUMBERS || !of[row->nr] || !plain(of[row->nr]))
			continue;
		fprintf(output, "%s\"%s\"", between, row->name);
		column += strlen(row->name) + 4;
		between = column > 100 ? ",\n\t" : ", ";
		column = column > 100 ? 8 : column;
	}
	if (*between == ',')
		fputs(",\n]\n", output);
}

void write_policy(struct learned *const *of, int fd, const char *path)
{
	const struct lind_syscall *row;

	/* Remove anything that the program may have written there in the meantime. */
	if (ftruncate(fd, 0) || !(output = fdopen(fd, "w")))
		lind_die("%s: %s", path, strerror(errno));
	fputs("# What one run needed; everything else is denied.\ndefault = \"deny\"\n", output);
	write_plain(of);
	for (size_t i = 0; (row = lind_syscall_at(i)); i++)
		if (row->nr < NUMBERS && of[row->nr] && !plain(of[row->nr]))
			write_call(row, of[row->nr]);
	if (fclose(output))
		lind_log("%s: cannot write the learned policy: %s", path, strerror(errno));
}
