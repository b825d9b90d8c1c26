/* Options before and after arguments, long, short and abbreviated; children; what is refused. */
#include "check.h"
#include <argp.h>
#include <stdarg.h>

static char said[1000];

static void say(const char *format, int key, const char *value)
{
	sprintf(said + strlen(said), format, key, value ? value : "-");
}

static error_t child_parser(int key, char *value, struct argp_state *s)
{
	(void)s;
	if (key != 'c')
		return ARGP_ERR_UNKNOWN;
	say("child %c=%s ", key, value);
	return 0;
}

static error_t parser(int key, char *value, struct argp_state *s)
{
	switch (key) {
	case 's':
	case 'v':
	case 'o':
		say("%c=%s ", key, value);
		return 0;
	case 300:
		say("%d=%s ", key, value);
		return 0;
	case ARGP_KEY_ARG:
		if (s->arg_num == 3)
			return ARGP_ERR_UNKNOWN;
		say("arg%d=%s ", s->arg_num, value);
		return 0;
	case ARGP_KEY_NO_ARGS:
		say("none%.0d%.0s ", 0, "");
		return 0;
	case ARGP_KEY_END:
		say("end%d%.0s", s->arg_num, "");
		return 0;
	}
	return ARGP_ERR_UNKNOWN;
}

static const struct argp_option options[] = {
	{ "size", 's', "N", 0, "A size", 0 },
	{ "verbose", 'v', 0, 0, "Says more", 0 },
	{ "loud", 'l', 0, OPTION_ALIAS, 0, 0 },
	{ "optional", 'o', "X", OPTION_ARG_OPTIONAL, "May have one", 0 },
	{ "long-only", 300, "Y", 0, "No letter", 0 },
	{ 0 },
}, child_options[] = {
	{ "child", 'c', "Z", 0, "Of the child", 0 },
	{ 0 },
};
static const struct argp child = { child_options, child_parser, 0, 0, 0, 0, 0 };
static const struct argp_child children[] = { { &child, 0, 0, 0 }, { 0 } };
static const struct argp all = { options, parser, "FILE...", "Tries it.", children, 0, 0 };

static int parse(unsigned flags, int *index, ...)
{
	char *argv[20] = { "x" };
	int argc = 1;
	va_list words;

	va_start(words, index);
	while ((argv[argc] = va_arg(words, char *)))
		argc++;
	va_end(words);
	*said = 0;
	return argp_parse(&all, argc, argv, flags | ARGP_SILENT, index, 0);
}

#define NONE ((char *)0)

int main(void)
{
	int index;

	CHECK_EQ(parse(0, 0, NONE), 0);
	CHECK_STR(said, "none end0");
	CHECK_EQ(parse(0, 0, "one", "-s", "3", "two", "--size=4", "-vvs5", NONE), 0);
	CHECK_STR(said, "s=3 s=4 v=- v=- s=5 arg0=one arg1=two end2");
	CHECK_EQ(parse(ARGP_IN_ORDER, 0, "one", "-s", "3", "two", NONE), 0);
	CHECK_STR(said, "arg0=one s=3 arg1=two end2");
	CHECK_EQ(parse(0, 0, "-o", "-oq", "--optional=w", "--opt", "--long=1", "--siz", "9", NONE), 0);
	CHECK_STR(said, "o=- o=q o=w o=- 300=1 s=9 none end0");
	CHECK_EQ(parse(0, 0, "one", "--", "-s", NONE), 0);
	CHECK_STR(said, "arg0=one arg1=-s end2");
	CHECK_EQ(parse(0, 0, "--child", "z", "-cy", NONE), 0);
	CHECK_STR(said, "child c=z child c=y none end0");
	CHECK_EQ(parse(0, &index, "1", "2", "3", "4", "-v", "5", NONE), 0);
	CHECK_EQ(index, 5);

	CHECK(parse(0, 0, "--nothing", NONE));
	CHECK(parse(0, 0, "-z", NONE));
	CHECK(parse(0, 0, "-s", NONE));
	CHECK(parse(0, 0, "--verbose=1", NONE));
	CHECK(parse(0, 0, "1", "2", "3", "4", NONE));

	char *help;
	size_t length;
	FILE *f = open_memstream(&help, &length);
	argp_help(&all, f, ARGP_HELP_SHORT_USAGE | ARGP_HELP_PRE_DOC, "x");
	fclose(f);
	CHECK_STR(help, "Usage: x [OPTION...] FILE...\nTries it.\n");
	free(help);
	return check_done();
}
