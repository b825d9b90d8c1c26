/* Prints the settings that a grate gets, as JSON. */
#include <lind/config.h>
#include <lind/grate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void quoted(const char *s)
{
	putchar('"');
	for (; *s; s++)
		if ((unsigned char)*s < ' ' || *s == '"' || *s == '\\' || *s == 0x7f)
			printf("\\u%04x", *s);
		else
			putchar(*s);
	putchar('"');
}

static void print(const struct lind_config *v)
{
	const char *between = "";

	switch (v->type) {
	case LIND_CONFIG_TABLE:
	case LIND_CONFIG_ARRAY:
		putchar(v->type == LIND_CONFIG_TABLE ? '{' : '[');
		for (const struct lind_config *in = v->first; in; in = in->next) {
			fputs(between, stdout);
			between = ",";
			if (in->key) {
				quoted(in->key);
				putchar(':');
			}
			print(in);
		}
		putchar(v->type == LIND_CONFIG_TABLE ? '}' : ']');
		break;
	case LIND_CONFIG_STRING:
		quoted(v->string);
		break;
	case LIND_CONFIG_INTEGER:
		printf(v->wide ? "%llu" : "%lld", (long long)v->integer);
		break;
	case LIND_CONFIG_FLOAT:
		printf("%.17e", v->number);
		break;
	case LIND_CONFIG_BOOL:
		fputs(v->truth ? "true" : "false", stdout);
	}
}

static const char *show(const char *value)
{
	print(lind_config_load(value));
	putchar('\n');
	fflush(stdout);
	return NULL;
}

LIND_OPTION("c", "config", "toml");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = { { 'c', "config", "FILE", "print this file", show } };

	lind_options(options, 1, "Prints settings.", &argc, &argv);
	return lind_grate_main(argc, argv);
}
