/* A grate's own options, and messages. */
#include <errno.h>
#include <lind/options.h>
#include <lind/text.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "sdk.h"

/* Options that come from a file (lind-boot --stack) have this before them, with where they
 * stand; so has, last, what has no option. */
#define PLACE "--lind-at="

__asm__(".section .custom_section.lind.grate,\"\",@\n.asciz \"takes places\"\n.text\n");

static char name[64] = "grate";
static const char *place;

const char *lind_name(void)
{
	return name;
}

/* The last part of the path, without .cwasm or .wasm. */
void lind_set_name(const char *argv0)
{
	const char *base = strrchr(argv0, '/');
	char *dot;

	snprintf(name, sizeof name, "%s", base ? base + 1 : argv0);
	if ((dot = strrchr(name, '.')) && (!strcmp(dot, ".cwasm") || !strcmp(dot, ".wasm")))
		*dot = 0;
}

static void print(const char *where, const char *format, va_list ap)
{
	char line[1024], text[4 * sizeof line];
	size_t shown;
	int n = snprintf(line, sizeof line / 2, "%s%s%s: ", where ? where : "", where ? ": " : "", name), m;

	if (n >= (int)sizeof line / 2)
		n = (int)sizeof line / 2 - 1;
	m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, ap);
	if (m > 0)
		n += m < (int)sizeof line - n - 1 ? m : (int)sizeof line - n - 2;
	/* Much of it may be names that guests have made up. */
	shown = lind_text_show(line, (size_t)n, text, sizeof text - 1);
	text[shown++] = '\n';
	if (write(2, text, shown) < 0)
		return;
}

void lind_log(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	print(NULL, format, ap);
	va_end(ap);
}

void lind_die(const char *format, ...)
{
	va_list ap;

	va_start(ap, format);
	print(place, format, ap);
	va_end(ap);
	exit(125);
}

static const struct lind_option *by_letter(const struct lind_option *options, size_t count, char letter)
{
	for (size_t i = 0; i < count; i++)
		if (options[i].letter == letter)
			return &options[i];
	return NULL;
}

/* Composers define another. */
__attribute__((weak)) const char lind_operands_[] = "PROGRAM [ARGS]...";

static void help(const struct lind_option *options, size_t count, const char *about)
{
	printf("%s\n\nUsage: %s [OPTIONS] %s\n\n", about, name, lind_operands_);
	for (size_t i = 0; i < count; i++) {
		const struct lind_option *o = &options[i];
		char left[64];
		int n = 0;

		n += snprintf(left, sizeof left, o->letter ? "-%c" : "  ", o->letter);
		if (o->name)
			n += snprintf(left + n, sizeof left - (size_t)n, "%s--%s", o->letter ? ", " : "  ", o->name);
		if (o->value)
			snprintf(left + n, sizeof left - (size_t)n, " %s", o->value);
		printf("  %-28s %s\n", left, o->help);
	}
	printf("  %-28s %s\n", by_letter(options, count, 'h') ? "    --help" : "-h, --help", "print this help");
	printf("  %-28s %s\n", "    --explain",
	    "print, as JSON, the calls that the options concern and the effect on each; run nothing");
	exit(0);
}

static const struct lind_option *by_name(
    const struct lind_option *options, size_t count, const char *text, size_t length)
{
	for (size_t i = 0; i < count; i++)
		if (options[i].name && strlen(options[i].name) == length && !strncmp(options[i].name, text, length))
			return &options[i];
	return NULL;
}

static void set(const struct lind_option *o, const char *as_typed, const char *value)
{
	const char *wrong = o->set(value);

	if (wrong && value)
		lind_die("%s: '%s': %s", as_typed, lind_file_name(value), wrong);
	if (wrong)
		lind_die("%s: %s", as_typed, wrong);
}

void lind_option_again_(const struct lind_option *options, size_t count, const char *word, char *wrong, size_t size)
{
	const char *equals = strchr(word, '=');
	size_t length = strncmp(word, "--", 2) ? 0 : equals ? (size_t)(equals - word) - 2 : strlen(word) - 2;
	const struct lind_option *o = length ? by_name(options, count, word + 2, length) : NULL;
	const char *why = "unknown option";

	if (o)
		why = !o->value == !equals ? o->set(equals ? equals + 1 : NULL) : "needs a value, or takes none";
	if (why)
		snprintf(wrong, size, "%s: %s", word, why);
}

/* --name, --name=VALUE, --name VALUE. Returns how many words it took. */
static int long_option(const struct lind_option *options, size_t count, const char *about, char **argv)
{
	const char *text = argv[0] + 2, *equals = strchr(text, '=');
	size_t length = equals ? (size_t)(equals - text) : strlen(text);
	const struct lind_option *o = by_name(options, count, text, length);

	if (!o && !strcmp(text, "help"))
		help(options, count, about);
	if (!o && !strcmp(text, "explain")) {
		lind_explains_();
		return 1;
	}
	if (!o)
		lind_die("unknown option '%s'; --help lists them", argv[0]);
	if (!o->value && equals)
		lind_die("--%s takes no value", o->name);
	if (!o->value || equals) {
		set(o, argv[0], equals ? equals + 1 : NULL);
		return 1;
	}
	if (!argv[1])
		lind_die("%s needs a value: %s", argv[0], o->value);
	set(o, argv[0], argv[1]);
	return 2;
}

/* -abc, -n VALUE, -nVALUE. Returns how many words it took. */
static int short_options(const struct lind_option *options, size_t count, const char *about, char **argv)
{
	for (const char *letter = argv[0] + 1; *letter; letter++) {
		const struct lind_option *o = by_letter(options, count, *letter);
		char typed[3] = { '-', *letter, 0 };

		if (!o && *letter == 'h')
			help(options, count, about);
		if (!o)
			lind_die("unknown option '%s'; --help lists them", typed);
		if (!o->value) {
			set(o, typed, NULL);
			continue;
		}
		if (letter[1]) {
			set(o, typed, letter + 1);
			return 1;
		}
		if (!argv[1])
			lind_die("%s needs a value: %s", typed, o->value);
		set(o, typed, argv[1]);
		return 2;
	}
	return 1;
}

const char *lind_number(const char *value, uint64_t *number)
{
	char *end;

	errno = 0;
	*number = strtoull(value, &end, 10);
	return *value < '0' || *value > '9' || *end || errno ? "must be a number" : NULL;
}

void lind_left_file(void)
{
	place = NULL;
}

static bool were_read;

void lind_options(const struct lind_option *options, size_t count, const char *about, int *argc, char ***argv)
{
	char **words = *argv;
	int i = 1;

	were_read = true;
	if (*argc)
		lind_set_name(words[0]);
	while (i < *argc && words[i][0] == '-' && words[i][1]) {
		if (!strcmp(words[i], "--")) {
			i++;
			break;
		}
		if (!strncmp(words[i], PLACE, sizeof PLACE - 1)) {
			place = words[i++] + sizeof PLACE - 1;
			continue;
		}
		i += words[i][1] == '-' ? long_option(options, count, about, words + i)
					: short_options(options, count, about, words + i);
	}
	if (i >= *argc)
		lind_die("no program to run; usage: %s [OPTIONS] %s", name, lind_operands_);
	words[i - 1] = words[0];
	*argv = words + i - 1;
	*argc -= i - 1;
}

void lind_common_options_(int *argc, char ***argv)
{
	if (*argc > 1 && (*argv)[1][0] == '-' && !were_read)
		lind_options(NULL, 0, "A grate without options.", argc, argv);
}
