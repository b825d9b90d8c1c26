/* Text of guests, made fit for a terminal and quoted for a shell. */
#include <lind/text.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Unicode's control and format characters, and its separators of lines and paragraphs (Cc, Cf,
 * Zl, Zp). */
static const struct {
	uint32_t from, to;
} unseen[] = {
	{ 0, 0x1f },
	{ 0x7f, 0x9f },
	{ 0xad, 0xad },
	{ 0x600, 0x605 },
	{ 0x61c, 0x61c },
	{ 0x6dd, 0x6dd },
	{ 0x70f, 0x70f },
	{ 0x890, 0x891 },
	{ 0x8e2, 0x8e2 },
	{ 0x180e, 0x180e },
	{ 0x200b, 0x200f },
	{ 0x2028, 0x202e },
	{ 0x2060, 0x2064 },
	{ 0x2066, 0x206f },
	{ 0xfeff, 0xfeff },
	{ 0xfff9, 0xfffb },
	{ 0x110bd, 0x110bd },
	{ 0x110cd, 0x110cd },
	{ 0x13430, 0x1343f },
	{ 0x1bca0, 0x1bca3 },
	{ 0x1d173, 0x1d17a },
	{ 0xe0001, 0xe0001 },
	{ 0xe0020, 0xe007f },
};

/* The longest escape, \u{e007f}, and one for each byte, \xff. */
#define LONGEST 9

size_t lind_text_char(const uint8_t *bytes, size_t size, uint32_t *character)
{
	static const uint32_t least[] = { 0, 0, 0x80, 0x800, 0x10000 };
	size_t length;
	uint32_t c;

	if (!size)
		return 0;
	c = *bytes;
	length = c < 0x80 ? 1 : c >> 5 == 6 ? 2 : c >> 4 == 14 ? 3 : c >> 3 == 30 ? 4 : 0;
	if (!length || length > size)
		return 0;
	if (length > 1)
		c &= 0x7fu >> length;
	for (size_t i = 1; i < length; i++) {
		if (bytes[i] >> 6 != 2)
			return 0;
		c = c << 6 | (bytes[i] & 0x3f);
	}
	*character = c;
	return c >= least[length] && c <= 0x10ffff && c >> 11 != 0x1b ? length : 0;
}

bool lind_text_seen(uint32_t c)
{
	if (c >= 0x20 && c < 0x7f)
		return true;
	for (size_t i = 0; i < sizeof unseen / sizeof *unseen; i++)
		if (c >= unseen[i].from && c <= unseen[i].to)
			return false;
	return true;
}

/* One character, or one byte that begins none, into a text with a NUL. Returns how many bytes of
 * `at` it was. */
static size_t show_one(const uint8_t *at, size_t left, char text[LONGEST + 1])
{
	uint32_t c;
	size_t size = lind_text_char(at, left, &c);

	if (!size) {
		sprintf(text, "\\x%02x", *at);
		return 1;
	}
	if (lind_text_seen(c)) {
		memcpy(text, at, size);
		text[size] = 0;
	} else if (c == '\n' || c == '\r' || c == '\t')
		sprintf(text, "\\%c", c == '\n' ? 'n' : c == '\r' ? 'r' : 't');
	else
		sprintf(text, "\\u{%x}", (unsigned)c);
	return size;
}

size_t lind_text_show(const char *bytes, size_t size, char *to, size_t room)
{
	size_t length = 0;

	for (size_t i = 0; i < size;) {
		char one[LONGEST + 1];
		size_t n;

		i += show_one((const uint8_t *)bytes + i, size - i, one);
		n = strlen(one);
		if (length + n >= room)
			break;
		memcpy(to + length, one, n);
		length += n;
	}
	to[length] = 0;
	return length;
}

/* Room for a text of this thread, until the fourth call from here. */
static char *room_for(size_t size)
{
	static _Thread_local char *kept[4];
	static _Thread_local unsigned next;
	char **at = &kept[next++ % 4];

	free(*at);
	return *at = malloc(size);
}

const char *lind_shown(const char *text)
{
	size_t size = strlen(text), room = size * LONGEST + 1;
	char *shown = room_for(room);

	if (!shown)
		return "(no memory)";
	lind_text_show(text, size, shown, room);
	return shown;
}

static bool is_plain(const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-=:,%+@";

	return *text && !text[strspn(text, plain)];
}

static bool is_seen(const char *text, size_t size)
{
	uint32_t c;

	for (size_t i = 0, n; i < size; i += n)
		if (!(n = lind_text_char((const uint8_t *)text + i, size - i, &c)) || !lind_text_seen(c))
			return false;
	return true;
}

const char *lind_shell_word(const char *text)
{
	size_t size = strlen(text), at = 0;
	bool seen = is_seen(text, size);
	char *word;

	if (is_plain(text))
		return text;
	if (!(word = room_for(size * 4 + 4)))
		return "''";
	at += (size_t)sprintf(word, seen ? "'" : "$'");
	for (size_t i = 0; i < size; i++) {
		uint8_t c = (uint8_t)text[i];

		if (seen)
			at += (size_t)sprintf(word + at, c == '\'' ? "'\\''" : "%c", c);
		else if (c >= 0x20 && c < 0x7f)
			at += (size_t)sprintf(word + at, c == '\'' || c == '\\' ? "\\%c" : "%c", c);
		else
			at += (size_t)sprintf(word + at, "\\x%02x", c);
	}
	strcpy(word + at, "'");
	return word;
}
