/* Prints what lind/toml.h makes of standard input: as JSON, or where it is wrong. Reads many texts,
 * each in front of a NUL. */
#include <lind/toml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void quoted(const char *s, size_t length)
{
	putchar('"');
	for (size_t i = 0; i < length; i++)
		if ((unsigned char)s[i] < ' ' || s[i] == '"' || s[i] == '\\' || s[i] == 0x7f)
			printf("\\u%04x", s[i]);
		else
			putchar(s[i]);
	putchar('"');
}

static void print(const struct lind_toml *v)
{
	const char *between = "";

	switch (v->type) {
	case LIND_TOML_TABLE:
	case LIND_TOML_ARRAY:
		putchar(v->type == LIND_TOML_TABLE ? '{' : '[');
		for (const struct lind_toml *in = v->first; in; in = in->next) {
			fputs(between, stdout);
			between = ",";
			if (in->key) {
				quoted(in->key, strlen(in->key));
				putchar(':');
			}
			print(in);
		}
		putchar(v->type == LIND_TOML_TABLE ? '}' : ']');
		break;
	case LIND_TOML_STRING:
		quoted(v->string, v->length);
		break;
	case LIND_TOML_INTEGER:
		printf(v->wide ? "%llu" : "%lld", (long long)v->integer);
		break;
	case LIND_TOML_FLOAT:
		printf(v->number - v->number != 0 ? "Infinity" : "%.17e", v->number);
		break;
	case LIND_TOML_BOOL:
		fputs(v->truth ? "true" : "false", stdout);
	}
}

int main(void)
{
	struct lind_toml_error error;
	char *text = NULL;
	size_t room = 0;
	ssize_t n;

	while ((n = getdelim(&text, &room, 0, stdin)) > 0) {
		/* Just as long as the text is, so that reading past it is found. */
		char *exact = malloc((size_t)n);
		struct lind_toml *root;

		n -= text[n - 1] == 0;
		memcpy(exact, text, (size_t)n);
		if ((root = lind_toml_parse("-", exact, (size_t)n, &error)))
			print(root);
		else
			printf("%u:%u: %s", error.line, error.column, error.text);
		putchar('\n');
		free(exact);
	}
	return 0;
}
