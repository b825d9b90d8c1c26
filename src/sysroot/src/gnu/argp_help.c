#define _GNU_SOURCE
#include <argp.h>
#include <ctype.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#define DOC_COLUMN 29
#define WIDTH 79

/* A program defines the variables that it sets. */
#define WEAK __attribute__((__weak__))
WEAK const char *argp_program_version, *argp_program_bug_address;
WEAK void (*argp_program_version_hook)(FILE *, struct argp_state *);
WEAK error_t argp_err_exit_status = EX_USAGE;

/* An option with its aliases, or a header. */
struct line {
	const struct argp_option *first;
	int aliases, group, level;
};

struct page {
	struct line *lines;
	size_t count, room;
};

static const struct argp_option own[] = {
	{ "help", '?', 0, 0, "Give this help list", -1 },
	{ "usage", 0, 0, 0, "Give a short usage message", -1 },
	{ 0 },
}, version[] = { { "version", 'V', 0, 0, "Print program version", -1 }, { 0 } };

static int there(const struct argp_option *o)
{
	return o->name || o->key || o->doc || o->group;
}

static int letter(const struct argp_option *o)
{
	return o->key > ' ' && o->key < 127 && !(o->flags & OPTION_DOC) ? o->key : 0;
}

static void collect(struct page *p, const struct argp_option *o, int level)
{
	int group = 0;
	for (; o && there(o); o++) {
		int header = !o->name && !o->key;
		if (o->group) group = o->group;
		else if (header) group++;
		if (o->flags & OPTION_ALIAS && p->count) {
			p->lines[p->count-1].aliases++;
			continue;
		}
		if (p->count == p->room) {
			size_t room = p->room ? 2*p->room : 32;
			struct line *more = realloc(p->lines, room * sizeof *more);
			if (!more) return;
			p->lines = more;
			p->room = room;
		}
		p->lines[p->count++] = (struct line){ o, 0, group, level };
	}
}

static int name_of(const struct argp_option *o)
{
	const char *name = o->name;
	while (name && *name && !isalnum((unsigned char)*name)) name++;
	return letter(o) ? letter(o) : name ? *name : 0;
}

/* Orders groups 0, 1, 2, ..., then -2, -1; in each the header first, then by letter. */
static int order(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	if (x->level != y->level) return x->level - y->level;
	if (x->group != y->group) return (x->group < 0) != (y->group < 0) ? (x->group < 0) - (y->group < 0) : x->group - y->group;
	int header = (x->first->name || x->first->key) - (y->first->name || y->first->key);
	if (header) return header;
	int m = name_of(x->first), n = name_of(y->first), folded = tolower(m) - tolower(n);
	return folded ? folded : n - m;
}

static void collect_all(struct page *p, const struct argp *a, int level)
{
	collect(p, a->options, level);
	for (const struct argp_child *c = a->children; c && c->argp; c++) collect_all(p, c->argp, level + 1);
}

static struct page page_of(const struct argp *a, unsigned flags)
{
	struct page p = { 0 };
	if (a) collect_all(&p, a, 0);
	if (!(flags & ARGP_NO_HELP)) {
		collect(&p, own, 1000);
		if (argp_program_version || argp_program_version_hook) collect(&p, version, 1000);
	}
	if (p.count) qsort(p.lines, p.count, sizeof *p.lines, order);
	return p;
}

/* Prints text from `column` on, in lines that start at `margin`. */
static void wrapped(FILE *f, const char *text, size_t column, size_t margin)
{
	while (*text) {
		if (*text == '\n') {
			putc('\n', f);
			column = 0;
			text++;
			continue;
		}
		size_t blanks = strspn(text, " "), n = strcspn(text + blanks, " \n");
		if (column + blanks + n > WIDTH && column > margin) {
			putc('\n', f);
			column = 0;
			blanks = 0;
			text += strspn(text, " ");
		}
		if (column < margin) {
			fprintf(f, "%*s", (int)(margin - column), "");
			column = margin;
		}
		fprintf(f, "%.*s", (int)(blanks + n), text);
		column += blanks + n;
		text += blanks + n;
	}
}

static const char *said(const char *text)
{
	return text ? text : "";
}

static void show(FILE *f, const struct line *l)
{
	const struct argp_option *o = l->first;
	if (!o->name && !o->key) {
		if (o->doc) fprintf(f, " %s\n", o->doc);
		return;
	}
	int at = 0, some = 0;
	if (o->flags & OPTION_DOC) {
		at = fprintf(f, "  %s", said(o->name));
	} else {
		for (int i = 0; i <= l->aliases; i++)
			if (letter(o + i) && !(o[i].flags & OPTION_HIDDEN)) at += fprintf(f, "%s-%c", some++ ? ", " : "  ", letter(o + i));
		for (int i = 0, longs = 0; i <= l->aliases; i++) {
			if (!o[i].name || o[i].flags & OPTION_HIDDEN) continue;
			at += fprintf(f, "%s--%s", some++ || longs++ ? ", " : "      ", o[i].name);
			if (o->arg) at += fprintf(f, o->flags & OPTION_ARG_OPTIONAL ? "[=%s]" : "=%s", o->arg);
		}
		if (!o->name && o->arg) at += fprintf(f, o->flags & OPTION_ARG_OPTIONAL ? "[%s]" : " %s", o->arg);
	}
	if (o->doc && *o->doc) {
		if (at >= DOC_COLUMN) {
			putc('\n', f);
			at = 0;
		}
		wrapped(f, o->doc, at, DOC_COLUMN);
	}
	putc('\n', f);
}

/* Prints a word of the usage, in lines that go on at a margin. */
static void add_word(FILE *f, int *at, const char *format, ...)
{
	char word[200];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(word, sizeof word, format, arguments);
	va_end(arguments);
	if (*at + 1 + strlen(word) >= WIDTH) *at = fprintf(f, "\n%*s", 11, "") - 1;
	*at += fprintf(f, " %s", word);
}

static void usage(FILE *f, const struct argp *a, const char *name, unsigned flags, const struct page *p)
{
	enum { LETTERS, WITH_ARGUMENT, LONG };
	int at = fprintf(f, "Usage: %s", name);
	if (flags & ARGP_HELP_SHORT_USAGE) add_word(f, &at, "[OPTION...]");
	else for (int pass = LETTERS; pass <= LONG; pass++) {
		char letters[100];
		size_t n = 0;
		for (size_t i = 0; i < p->count; i++) {
			const struct argp_option *real = p->lines[i].first, *o = real;
			int optional = real->flags & OPTION_ARG_OPTIONAL;
			for (; o <= real + p->lines[i].aliases; o++) {
				if (o->flags & (OPTION_HIDDEN | OPTION_NO_USAGE | OPTION_DOC)) continue;
				if (pass == LETTERS && letter(o) && !real->arg && n + 1 < sizeof letters) letters[n++] = letter(o);
				if (pass == WITH_ARGUMENT && letter(o) && real->arg)
					add_word(f, &at, optional ? "[-%c[%s]]" : "[-%c %s]", letter(o), real->arg);
				if (pass == LONG && o->name)
					add_word(f, &at, optional ? "[--%s[=%s]]" : real->arg ? "[--%s=%s]" : "[--%s]", o->name, said(real->arg));
			}
		}
		letters[n] = 0;
		if (n) add_word(f, &at, "[-%s]", letters);
	}
	if (a && a->args_doc && *a->args_doc) add_word(f, &at, "%.*s", (int)strcspn(a->args_doc, "\n"), a->args_doc);
	putc('\n', f);
}

static void help(const struct argp *a, const struct argp_state *s, FILE *f, unsigned flags, const char *name)
{
	if (!f) return;
	struct page p = page_of(a, s ? s->flags : 0);
	const char *doc = a ? said(a->doc) : "", *after = strchr(doc, '\v');
	flockfile(f);
	if (flags & (ARGP_HELP_USAGE | ARGP_HELP_SHORT_USAGE)) usage(f, a, name, flags, &p);
	if (flags & ARGP_HELP_PRE_DOC && *doc && doc != after) {
		char *before = strndup(doc, after ? (size_t)(after - doc) : strlen(doc));
		if (before) wrapped(f, before, 0, 0);
		free(before);
		putc('\n', f);
	}
	if (flags & ARGP_HELP_SEE) fprintf(f, "Try `%s --help' or `%s --usage' for more information.\n", name, name);
	if (flags & ARGP_HELP_LONG && p.count) {
		int arguments = 0;
		if (flags & ARGP_HELP_PRE_DOC) putc('\n', f);
		for (size_t i = 0, shown = 0; i < p.count; i++) {
			const struct line *l = &p.lines[i];
			if (l->first->flags & OPTION_HIDDEN) continue;
			if (shown++ && (l->group != l[-1].group || l->level != l[-1].level)) putc('\n', f);
			show(f, l);
			if (l->first->arg && l->first->name && letter(l->first)) arguments = 1;
		}
		if (arguments) fputs("\nMandatory or optional arguments to long options are also mandatory or optional\nfor any corresponding short options.\n", f);
	}
	if (flags & ARGP_HELP_POST_DOC && after && after[1]) {
		putc('\n', f);
		wrapped(f, after + 1, 0, 0);
		putc('\n', f);
	}
	if (flags & ARGP_HELP_BUG_ADDR && argp_program_bug_address) fprintf(f, "\nReport bugs to %s.\n", argp_program_bug_address);
	funlockfile(f);
	free(p.lines);
}

void argp_help(const struct argp *argp, FILE *f, unsigned flags, char *name)
{
	help(argp, 0, f, flags, name);
}

void argp_state_help(const struct argp_state *s, FILE *f, unsigned flags)
{
	if (s && s->flags & ARGP_NO_ERRS) return;
	help(s ? s->root_argp : 0, s, f, flags, s ? s->name : program_invocation_short_name);
	if (s && s->flags & ARGP_NO_EXIT) return;
	if (flags & ARGP_HELP_EXIT_ERR) exit(argp_err_exit_status);
	if (flags & ARGP_HELP_EXIT_OK) exit(0);
}

void argp_usage(const struct argp_state *s)
{
	argp_state_help(s, stderr, ARGP_HELP_STD_USAGE);
}

void argp_error(const struct argp_state *s, const char *format, ...)
{
	va_list arguments;
	if (s && s->flags & ARGP_NO_ERRS) return;
	FILE *f = s ? s->err_stream : stderr;
	fprintf(f, "%s: ", s ? s->name : program_invocation_short_name);
	va_start(arguments, format);
	vfprintf(f, format, arguments);
	va_end(arguments);
	putc('\n', f);
	argp_state_help(s, f, ARGP_HELP_STD_ERR);
}

void argp_failure(const struct argp_state *s, int status, int error, const char *format, ...)
{
	va_list arguments;
	if (s && s->flags & ARGP_NO_ERRS) return;
	FILE *f = s ? s->err_stream : stderr;
	fputs(s ? s->name : program_invocation_short_name, f);
	if (format) {
		fputs(": ", f);
		va_start(arguments, format);
		vfprintf(f, format, arguments);
		va_end(arguments);
	}
	if (error) fprintf(f, ": %s", strerror(error));
	putc('\n', f);
	if (status && !(s && s->flags & ARGP_NO_EXIT)) exit(status);
}
