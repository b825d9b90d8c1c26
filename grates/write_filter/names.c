/* Paths against the patterns of rules. */
#include <ctype.h>
#include <fnmatch.h>
#include <limits.h>
#include <lind/guard.h>
#include <string.h>
#include "names.h"

/* Below a pattern that ends with two stars, or what the shell would match; a star matches no
 * slash. */
bool matches(const char *path, const char *pattern)
{
	size_t length = strlen(pattern);
	char top[PATH_MAX], start[LIND_PATH_MAX + 16];

	if (length < 3 || strcmp(pattern + length - 3, "/**"))
		return !fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD);
	memcpy(top, pattern, length - 3);
	top[length - 3] = 0;
	/* Some directory above the path matches the part before the stars. */
	strcpy(start, path);
	for (char *slash = strrchr(start, '/'); slash; slash = strrchr(start, '/')) {
		*slash = 0;
		if (!fnmatch(top, start, FNM_PATHNAME | FNM_PERIOD))
			return true;
	}
	return false;
}

/* The name at the beginning of a path, without the slashes before it; `*rest` is what follows. */
size_t first(const char *path, const char **name, const char **rest)
{
	size_t length;

	while (*path == '/')
		path++;
	length = strcspn(path, "/");
	*name = path;
	*rest = path + length;
	return length;
}

/*
 * One character of a name as a file system may see it that takes large and small letters for the
 * same, and leaves out characters that nobody sees: Linux's folded directories, and those of macOS
 * and Windows. `*at` moves on; 0 at the end.
 */
int folded(const char **at, const char *end)
{
	static const struct {
		const char *bytes;
		int letter;
	} known[] = {
		{ "\xc5\xbf", 's' },
		{ "\xe2\x84\xaa", 'k' }, /* long s, Kelvin sign */
		/* Characters without a width: soft hyphen, joiner, marks of direction, selectors of variants,
		 * the mark of byte order. */
		{ "\xc2\xad", 0 },
		{ "\xcd\x8f", 0 },
		{ "\xd8\x9c", 0 },
		{ "\xe1\x85\x9f", 0 },
		{ "\xe1\x85\xa0", 0 },
		{ "\xe1\x9e\xb4", 0 },
		{ "\xe1\x9e\xb5", 0 },
		{ "\xe1\xa0\x8b", 0 },
		{ "\xe1\xa0\x8c", 0 },
		{ "\xe1\xa0\x8d", 0 },
		{ "\xe1\xa0\x8e", 0 },
		{ "\xe1\xa0\x8f", 0 },
		{ "\xe3\x85\xa4", 0 },
		{ "\xef\xbb\xbf", 0 },
		{ "\xef\xbe\xa0", 0 },
	};

	while (*at < end) {
		const unsigned char *c = (const unsigned char *)*at;
		size_t left = (size_t)(end - *at);
		bool skipped = false;

		/* U+200B to U+200F, U+202A to U+202E, U+2060 to U+206F; U+FE00 to U+FE0F. */
		if (left >= 3 && c[0] == 0xe2 &&
		    ((c[1] == 0x80 && ((c[2] >= 0x8b && c[2] <= 0x8f) || (c[2] >= 0xaa && c[2] <= 0xae))) ||
			(c[1] == 0x81 && c[2] >= 0xa0 && c[2] <= 0xaf)))
			skipped = true;
		if (left >= 3 && c[0] == 0xef && c[1] == 0xb8 && c[2] >= 0x80 && c[2] <= 0x8f)
			skipped = true;
		if (skipped) {
			*at += 3;
			continue;
		}
		for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
			size_t length = strlen(known[i].bytes);

			if (left < length || memcmp(c, known[i].bytes, length))
				continue;
			*at += length;
			if (known[i].letter)
				return known[i].letter;
			skipped = true;
			break;
		}
		if (!skipped) {
			++*at;
			return tolower(*c);
		}
	}
	return 0;
}

bool same_name(const char *a, size_t a_length, const char *b, size_t b_length)
{
	const char *a_end = a + a_length, *b_end = b + b_length;

	for (;;) {
		int one = folded(&a, a_end), other = folded(&b, b_end);

		if (one != other)
			return false;
		if (!one)
			return true;
	}
}

/* Whether a name is one of a pattern with `*` and `?` in it. */
bool is_one_of(const char *pattern, size_t pattern_length, const char *name, size_t length)
{
	char patterned[NAME_MAX + 1], named[NAME_MAX + 1];

	if (pattern_length > NAME_MAX || length > NAME_MAX)
		return false;
	memcpy(patterned, pattern, pattern_length);
	patterned[pattern_length] = 0;
	memcpy(named, name, length);
	named[length] = 0;
	return !fnmatch(patterned, named, FNM_CASEFOLD | FNM_NOESCAPE);
}

/*
 * How a path lies to a protected one, in which `*` and `?` in a name are as in a shell, and two
 * stars stand for any number of names. A directory that only the two stars stand for is not above
 * it: any could be. Large and small letters are the same, as they are to some file systems of the
 * host.
 */
enum relation relation(const char *path, const char *protected)
{
	const char *name, *rest, *wanted, *more;
	size_t length = first(path, &name, &rest), wanted_length = first(protected, &wanted, &more);

	if (!wanted_length)
		return BELOW;
	if (wanted_length == 2 && !strncmp(wanted, "**", 2)) {
		enum relation found = length ? APART : ABOVE;

		for (; found != BELOW && first(path, &name, &rest); path = rest) {
			enum relation here = relation(path, more);

			found = here > found ? here : found;
		}
		return found;
	}
	if (!length)
		return ABOVE;
	/* The star matches any bytes. */
	if (wanted_length == 1 && *wanted == '*')
		return relation(rest, more);
	if (memchr(wanted, '*', wanted_length) || memchr(wanted, '?', wanted_length)
		? is_one_of(wanted, wanted_length, name, length)
		: same_name(name, length, wanted, wanted_length))
		return relation(rest, more);
	return APART;
}

/* The part of a path below a directory that it begins with; NULL if it does not. */
const char *below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return !strncmp(path, directory, length) && (path[length] == '/' || !path[length]) ? path + length : NULL;
}
