/* Clients change only files whose paths match a pattern, and nothing that is protected. */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <lind/guard.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char **patterns;
static size_t count;
static char **protected;
static size_t protected_count;
/* Names that may be only below certain directories. */
static char **confined, **inside;
static size_t confined_count, inside_count;
/* Directories below which no name may begin with a dot, but for those that match one of these
 * patterns. */
static char **hidden, **harmless;
static size_t hidden_count, harmless_count;
static struct lind_guard guard;

/* Below a pattern that ends with two stars, or what the shell would match; a star matches no
 * slash. */
static bool matches(const char *path, const char *pattern)
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

enum relation { APART, ABOVE, BELOW }; /* BELOW is also what is protected itself */

/* The name at the beginning of a path, without the slashes before it; `*rest` is what follows. */
static size_t first(const char *path, const char **name, const char **rest)
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
static int folded(const char **at, const char *end)
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

static bool same_name(const char *a, size_t a_length, const char *b, size_t b_length)
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
static bool is_one_of(const char *pattern, size_t pattern_length, const char *name, size_t length)
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
static enum relation relation(const char *path, const char *protected)
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
static const char *below(const char *path, const char *directory)
{
	size_t length = strlen(directory);

	return !strncmp(path, directory, length) && (path[length] == '/' || !path[length]) ? path + length : NULL;
}

static bool is_harmless(const char *name, size_t length)
{
	for (size_t i = 0; i < harmless_count; i++)
		if (is_one_of(harmless[i], strlen(harmless[i]), name, length))
			return true;
	return false;
}

/* The name in a path that begins with a dot, below the innermost directory where that is not
 * allowed, and is not known to be harmless. Its length, 0: none. */
static size_t hidden_in(const char *path, const char **name)
{
	const char *inside_of = NULL, *rest;

	for (size_t i = 0; i < hidden_count; i++) {
		const char *here = below(path, hidden[i]);

		inside_of = here && (!inside_of || here > inside_of) ? here : inside_of;
	}
	for (; inside_of; inside_of = rest) {
		size_t length = first(inside_of, name, &rest);
		const char *at = *name;

		if (!length)
			break;
		if (folded(&at, *name + length) == '.' && !is_harmless(*name, length))
			return length;
	}
	return 0;
}

/*
 * Whether a change would be one of what is protected: in it, or of a directory above it, which can
 * neither be put in another's place nor be taken away with all that is in it.
 */
static bool is_protected(const char *path, unsigned effect)
{
	const char *name;

	for (size_t i = 0; i < protected_count; i++) {
		enum relation found = relation(path, protected[i]);

		if (found == BELOW ||
		    (found == ABOVE && effect & (LIND_DOES_CREATE | LIND_DOES_REMOVE | LIND_DOES_LINK)))
			return true;
	}
	return hidden_in(path, &name);
}

static bool is_below(const char *path, char *const *list, size_t length)
{
	for (size_t i = 0; i < length; i++)
		if (relation(path, list[i]) == BELOW)
			return true;
	return false;
}

static bool may_change(const char *path, unsigned effect)
{
	if (is_protected(path, effect) ||
	    (is_below(path, confined, confined_count) && !is_below(path, inside, inside_count)))
		return false;
	if (!count)
		return true;
	for (size_t i = 0; i < count; i++)
		if (matches(path, patterns[i]))
			return true;
	return false;
}

/* A directory below --inside may hold files that would be confined elsewhere, so it is not moved
 * out. */
static bool may_move_all_in(const char *directory)
{
	return !is_below(directory, inside, inside_count);
}

/* Finds the part of a path that is a name protected in any directory. Returns its length, 0:
 * none. */
static size_t protected_name(const char *path, const char **found)
{
	const char *name, *rest;
	size_t length;

	for (size_t i = 0; i < protected_count; i++) {
		const char *any = strstr(protected[i], "/**/");

		if (!any || strchr(any + 4, '/') || relation(path, protected[i]) != BELOW)
			continue;
		for (const char *at = path; (length = first(at, &name, &rest)); at = rest)
			if (same_name(name, length, any + 4, strlen(any + 4))) {
				*found = name;
				return length;
			}
	}
	return hidden_in(path, found);
}

static const char *why(const char *path, unsigned effect)
{
	static _Thread_local char reason[NAME_MAX + 64];
	const char *name;
	size_t length = protected_name(path, &name);

	if (length && length <= NAME_MAX) {
		snprintf(reason, sizeof reason, "may not be changed, as any %.*s", (int)length, name);
		return reason;
	}
	if (!is_protected(path, effect) && is_below(path, inside, inside_count))
		return "may not be moved from there";
	return is_protected(path, effect) || is_below(path, confined, confined_count)
	    ? "may not be changed"
	    : "not among the paths that may be changed";
}

static const char *add(char ***list, size_t *length, const char *value)
{
	char **more;

	if (*value != '/')
		return "must begin with /";
	if (strlen(value) >= PATH_MAX)
		return "too long";
	if (!(more = realloc(*list, (*length + 1) * sizeof *more)))
		return "out of memory";
	*list = more;
	if (!(more[*length] = strdup(value)))
		return "out of memory";
	++*length;
	return NULL;
}

static const char *allow(const char *value)
{
	return add(&patterns, &count, value);
}

static const char *add_clean(char ***list, size_t *length, const char *value)
{
	char clean[PATH_MAX];
	const char *wrong = lind_path_clean(value, clean);

	return wrong ? wrong : add(list, length, clean);
}

static const char *protect(const char *value)
{
	return add_clean(&protected, &protected_count, value);
}

static const char *confine(const char *value)
{
	return add_clean(&confined, &confined_count, value);
}

static const char *let_inside(const char *value)
{
	return add_clean(&inside, &inside_count, value);
}

static const char *hide(const char *value)
{
	return add_clean(&hidden, &hidden_count, value);
}

/* Several patterns with a slash between: none has one. */
static const char *let_be(const char *value)
{
	const char *name, *rest;
	size_t length;

	for (; (length = first(value, &name, &rest)); value = rest) {
		char **more = realloc(harmless, (harmless_count + 1) * sizeof *more);

		if (!more)
			return "out of memory";
		harmless = more;
		if (!(more[harmless_count] = strndup(name, length)))
			return "out of memory";
		harmless_count++;
	}
	return NULL;
}

static const char *answer(const char *value)
{
	static const struct {
		const char *name;
		int number;
	} known[] = { { "EACCES", EACCES }, { "EPERM", EPERM }, { "EROFS", EROFS } };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(value, known[i].name)) {
			guard.refusal = known[i].number;
			return NULL;
		}
	return "must be EACCES, EPERM or EROFS";
}

LIND_SETS(keep_given, guard.keeps_given = true)

LIND_GUARD_CALLS

LIND_OPTION("a", "allow", "value");
LIND_OPTION("e", "errno", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'a', "allow", "PATTERN",
		    "allow changes to these paths: *, ? and [...] as in a shell, /** for everything below", allow },
		{ 'p', "protect", "PATH",
		    "forbid changes to PATH and below, even if --allow matches: ** for any directories, * and ? in names; without --allow, all other paths may be changed",
		    protect },
		{ 0, "confine", "PATH", "forbid changes to PATH and below, except below the paths of --inside",
		    confine },
		{ 0, "inside", "PATH",
		    "allow changes to confined paths below PATH; directories cannot be moved out of it", let_inside },
		{ 0, "hidden", "PATH", "forbid changes below PATH to each name that begins with a dot", hide },
		{ 0, "harmless", "NAMES",
		    "except these names from --hidden: patterns with * and ?, separated by slashes", let_be },
		{ 0, "given", NULL, "keep the open files of the caller writable, whatever their paths are",
		    keep_given },
		{ 'e', "errno", "NAME", "return this error for other changes: EACCES (default), EPERM, EROFS", answer },
	};

	guard = (struct lind_guard){
		.may_change = may_change, .may_move_all_in = may_move_all_in, .refusal = EACCES, .why = why
	};
	lind_options(options, sizeof options / sizeof *options, "Lets clients change only files whose paths match.",
	    &argc, &argv);
	lind_guard_begin(&guard);
	return lind_grate_main(argc, argv);
}
