/* Names and contents that guests have made, shown to people. */
#include "print.h"
#include <lind/text.h>
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

/* How many bytes the character at the beginning of a text has in UTF-8; 0: it begins with none. */
static size_t character(const uint8_t *text, uint32_t *number)
{
	return lind_text_char(text, strlen((const char *)text), number);
}

static void print_string(const char *text)
{
	putchar('"');
	for (const uint8_t *c = (const uint8_t *)text; *c;) {
		uint32_t number;
		size_t size = character(c, &number);

		if (!size)
			printf("\\ufffd");
		else if (number == '"' || number == '\\')
			printf("\\%c", (int)number);
		else if (!lind_text_seen(number) && number > 0xffff)
			printf(
			    "\\u%04x\\u%04x", 0xd7c0 + (unsigned)(number >> 10), 0xdc00 + (unsigned)(number & 0x3ff));
		else if (!lind_text_seen(number))
			printf("\\u%04x", (unsigned)number);
		else
			fwrite(c, 1, size, stdout);
		c += size ? size : 1;
	}
	putchar('"');
}

static bool is_utf8(const char *text)
{
	size_t size = 1;
	uint32_t number;

	for (const uint8_t *c = (const uint8_t *)text; *c && size; c += size)
		size = character(c, &number);
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
	for (size_t i = 0, n; i < size; i += n) {
		char shown[16];
		uint32_t c;

		n = lind_text_char(bytes + i, size - i, &c);
		if (n == 1 && is_control((unsigned char)c) && c != '\n' && c != '\t') {
			fprintf(out, "^%c", (int)c ^ 0x40);
			continue;
		}
		if (n && (lind_text_seen(c) || c == '\n' || c == '\t')) {
			fwrite(bytes + i, 1, n, out);
			continue;
		}
		n = n ? n : 1;
		lind_text_show((const char *)bytes + i, n, shown, sizeof shown);
		fputs(shown, out);
	}
}
