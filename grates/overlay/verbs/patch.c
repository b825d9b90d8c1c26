/* Lines compared by the algorithm of E. W. Myers (An O(ND) difference algorithm and its
 * variations, 1986), and printed as hunks. */
#include "patch.h"
#include "print.h"
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTEXT 3
#define MOST    2000 /* differences; texts that have more are taken as different altogether */

struct line {
	const uint8_t *start;
	size_t size;
	uint64_t hash;
};

struct text {
	struct line *lines;
	size_t count;
	bool *changed;  /* of each line: whether the other text lacks it */
};

bool patch_is_binary(const uint8_t *bytes, size_t size)
{
	return memchr(bytes, 0, size < 8000 ? size : 8000) != NULL;
}

static struct text split(const uint8_t *bytes, size_t size)
{
	struct text text = { 0 };
	size_t count = 1;

	for (size_t i = 0; i < size; i++)
		count += bytes[i] == '\n';
	text.lines = calloc(count, sizeof *text.lines);
	text.changed = calloc(count, sizeof *text.changed);
	if (!text.lines || !text.changed)
		abort();
	for (size_t at = 0; at < size;) {
		const uint8_t *end = memchr(bytes + at, '\n', size - at);
		size_t length = end ? (size_t)(end - bytes) + 1 - at : size - at;
		struct line *line = &text.lines[text.count++];

		*line = (struct line){ bytes + at, length, 14695981039346656037u };
		for (size_t i = 0; i < length; i++)
			line->hash = (line->hash ^ bytes[at + i]) * 1099511628211u;
		at += length;
	}
	return text;
}

static bool same(const struct line *a, const struct line *b)
{
	return a->hash == b->hash && a->size == b->size && !memcmp(a->start, b->start, a->size);
}

/* Goes the way back from the end: `reached` has, of each number of differences, how far each
 * diagonal was got along. */
static void trace(
    struct text *old, struct text *new, size_t from, int old_count, int new_count, int **reached, int differences)
{
	int x = old_count, y = new_count;

	for (int d = differences; d > 0; d--) {
		const int *v = reached[d - 1] + d - 1;
		int k = x - y;
		bool down = k == -d || (k != d && v[k - 1] < v[k + 1]);
		int before = down ? k + 1 : k - 1;

		x = v[before];
		y = x - before;
		if (down)
			new->changed[from + (size_t)y] = true;
		else
			old->changed[from + (size_t)x] = true;
	}
}

/* How many differences there are between the lines from `from` on, of which so many are left;
 * -1: more than MOST. */
static int compare(struct text *old, struct text *new, size_t from, int old_count, int new_count, int **reached)
{
	const struct line *a = old->lines + from, *b = new->lines + from;

	for (int d = 0; d <= MOST; d++) {
		const int *v = d ? reached[d - 1] + d - 1 : NULL;
		int *next = calloc((size_t)d * 2 + 1, sizeof *next);

		if (!next)
			abort();
		reached[d] = next;
		next += d;
		for (int k = -d; k <= d; k += 2) {
			int x = !d                                       ? 0
			    : k == -d || (k != d && v[k - 1] < v[k + 1]) ? v[k + 1]
									 : v[k - 1] + 1,
			    y = x - k;

			while (x < old_count && y >= 0 && y < new_count && same(&a[x], &b[y]))
				x++, y++;
			next[k] = x;
			if (x >= old_count && y >= new_count)
				return d;
		}
	}
	return -1;
}

static void mark(struct text *old, struct text *new)
{
	static int *reached[MOST + 1];
	size_t from = 0, old_end = old->count, new_end = new->count;
	int differences;

	while (from < old_end && from < new_end && same(&old->lines[from], &new->lines[from]))
		from++;
	while (old_end > from && new_end > from && same(&old->lines[old_end - 1], &new->lines[new_end - 1]))
		old_end--, new_end--;
	differences = compare(old, new, from, (int)(old_end - from), (int)(new_end - from), reached);
	if (differences >= 0)
		trace(old, new, from, (int)(old_end - from), (int)(new_end - from), reached, differences);
	for (size_t i = from; differences < 0 && i < old_end; i++)
		old->changed[i] = true;
	for (size_t i = from; differences < 0 && i < new_end; i++)
		new->changed[i] = true;
	for (int d = 0; d <= (differences < 0 ? MOST : differences); d++)
		free(reached[d]);
}

static void print_line(FILE *out, char sign, const struct line *line)
{
	fputc(sign, out);
	if (isatty(fileno(out)))
		verb_print_text(out, line->start, line->size);
	else
		fwrite(line->start, 1, line->size, out);
	if (!line->size || line->start[line->size - 1] != '\n')
		fputs("\n\\ No newline at end of file\n", out);
}

static void print_range(FILE *out, char sign, size_t start, size_t count)
{
	fprintf(out, "%c%zu", sign, count ? start + 1 : start);
	if (count != 1)
		fprintf(out, ",%zu", count);
}

/* Prints the lines from `a` and `b` on as one hunk. */
static void print_hunk(
    FILE *out, const struct text *old, const struct text *new, size_t a, size_t a_end, size_t b, size_t b_end)
{
	fputs("@@ ", out);
	print_range(out, '-', a, a_end - a);
	fputc(' ', out);
	print_range(out, '+', b, b_end - b);
	fputs(" @@\n", out);
	while (a < a_end || b < b_end) {
		if (a < a_end && old->changed[a])
			print_line(out, '-', &old->lines[a++]);
		else if (b < b_end && new->changed[b])
			print_line(out, '+', &new->lines[b++]);
		else {
			print_line(out, ' ', &old->lines[a++]);
			b++;
		}
	}
}

static void print_hunks(FILE *out, const struct text *old, const struct text *new)
{
	size_t a = 0, b = 0;

	while (a < old->count || b < new->count) {
		size_t start_a, start_b, same_lines = 0;

		if ((a >= old->count || !old->changed[a]) && (b >= new->count || !new->changed[b])) {
			a++, b++;
			continue;
		}
		start_a = a < CONTEXT ? 0 : a - CONTEXT;
		start_b = b - (a - start_a);
		/* Up to where there are twice the context's lines without a change. */
		while ((a < old->count || b < new->count) && same_lines <= 2 * CONTEXT) {
			bool changed = false;

			for (; a < old->count && old->changed[a]; a++)
				changed = true;
			for (; b < new->count && new->changed[b]; b++)
				changed = true;
			if (changed)
				same_lines = 0;
			if (a < old->count && b < new->count) {
				a++, b++;
				same_lines++;
			}
		}
		if (same_lines > CONTEXT) {
			a -= same_lines - CONTEXT;
			b -= same_lines - CONTEXT;
		}
		print_hunk(out, old, new, start_a, a, start_b, b);
	}
}

static void drop(struct text *text)
{
	free(text->lines);
	free(text->changed);
}

unsigned patch_similarity(const uint8_t *old_bytes, size_t old_size, const uint8_t *new_bytes, size_t new_size)
{
	struct text old = split(old_bytes, old_size), new = split(new_bytes, new_size);
	size_t most = old_size > new_size ? old_size : new_size, common = 0;

	mark(&old, &new);
	for (size_t i = 0; i < old.count; i++)
		common += old.changed[i] ? 0 : old.lines[i].size;
	drop(&old);
	drop(&new);
	return most ? (unsigned)(common * 100ull / most) : 100;
}

struct patch_sum patch_print(
    const uint8_t *old_bytes, size_t old_size, const uint8_t *new_bytes, size_t new_size, FILE *out)
{
	struct text old = split(old_bytes, old_size), new = split(new_bytes, new_size);
	struct patch_sum sum = { 0 };

	mark(&old, &new);
	for (size_t i = 0; i < old.count; i++)
		sum.removed += old.changed[i];
	for (size_t i = 0; i < new.count; i++)
		sum.added += new.changed[i];
	if (out)
		print_hunks(out, &old, &new);
	drop(&old);
	drop(&new);
	return sum;
}
