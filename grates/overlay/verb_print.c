/* Names and contents that guests have made, shown to people. */
#include "verb_print.h"
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static bool is_control(unsigned char c)
{
	return c < ' ' || c == 127;
}

void verb_print_name(const char *prefix, const char *name)
{
	bool odd = false;

	for (const char *c = name; *c; c++)
		odd |= is_control((unsigned char)*c) || (unsigned char)*c > 127 || *c == '"' || *c == '\\';
	if (!odd) {
		printf("%s%s", prefix, name);
		return;
	}
	printf("\"%s", prefix);
	for (const char *c = name; *c; c++) {
		if (*c == '"' || *c == '\\')
			printf("\\%c", *c);
		else if (is_control((unsigned char)*c) || (unsigned char)*c > 127)
			printf("\\%03o", (unsigned char)*c);
		else
			putchar(*c);
	}
	putchar('"');
}

/* Beside ASCII's control characters there are U+0080 to U+009F: this byte and one of those. */
static bool is_c1(const uint8_t *bytes, size_t size)
{
	return size > 1 && bytes[0] == 0xc2 && bytes[1] >= 0x80 && bytes[1] < 0xa0;
}

/* How many bytes the character at the beginning of a text has in UTF-8; 0: that is none. */
static size_t character(const uint8_t *c)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t size = *c < 0x80 ? 1 : *c >> 5 == 6 ? 2 : *c >> 4 == 14 ? 3 : *c >> 3 == 30 ? 4 : 0;
	uint32_t number = size > 1 ? *c & (0x7fu >> size) : *c;

	for (size_t i = 1; i < size; i++) {
		if (c[i] >> 6 != 2)
			return 0;
		number = number << 6 | (c[i] & 0x3f);
	}
	return size && number >= least[size] && number <= 0x10ffff && number >> 11 != 0x1b ? size : 0;
}

static void print_string(const char *text)
{
	putchar('"');
	for (const uint8_t *c = (const uint8_t *)text; *c;) {
		size_t size = character(c);

		if (!size)
			printf("\\ufffd");
		else if (size == 1 && (*c == '"' || *c == '\\'))
			printf("\\%c", *c);
		else if (size == 1 && is_control(*c))
			printf("\\u%04x", *c);
		else if (is_c1(c, size))
			printf("\\u%04x", c[1]);
		else
			fwrite(c, 1, size, stdout);
		c += size ? size : 1;
	}
	putchar('"');
}

static bool is_utf8(const char *text)
{
	size_t size = 1;

	for (const uint8_t *c = (const uint8_t *)text; *c && size; c += size)
		size = character(c);
	return size;
}

void verb_print_member(const char *name, const char *text)
{
	printf("\"%s\": ", name);
	print_string(text);
	if (is_utf8(text))
		return;
	printf(", \"%s_bytes\": \"", name);
	for (const uint8_t *c = (const uint8_t *)text; *c; c++)
		printf("%02x", *c);
	putchar('"');
}

void verb_print_text(FILE *out, const uint8_t *bytes, size_t size)
{
	for (size_t i = 0; i < size; i++) {
		if (is_c1(bytes + i, size - i))
			fprintf(out, "^[%c", bytes[++i] - 0x40);
		else if (is_control(bytes[i]) && bytes[i] != '\n' && bytes[i] != '\t')
			fprintf(out, "^%c", bytes[i] ^ 0x40);
		else
			fputc(bytes[i], out);
	}
}

const char *verb_shown(const char *name)
{
	static char *shown;
	size_t size = strlen(name), at = 0;

	free(shown);
	if (!(shown = malloc(size * 4 + 1)))
		return "a file";
	for (const uint8_t *c = (const uint8_t *)name; *c; c++)
		if (is_c1(c, 2))
			at += (size_t)sprintf(shown + at, "\\302\\%03o", *++c);
		else if (is_control(*c))
			at += (size_t)sprintf(shown + at, "\\%03o", *c);
		else
			shown[at++] = (char)*c;
	shown[at] = 0;
	return shown;
}
