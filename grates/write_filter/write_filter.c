/* Clients change only files whose paths match a pattern, and nothing that is protected. */
#include <errno.h>
#include <fnmatch.h>
#include <lind/guard.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static char **patterns;
static size_t count;
static char **protected;
static size_t protected_count;
/* Names that may be only below certain directories. */
static char **confined, **inside;
static size_t confined_count, inside_count;
static struct lind_guard guard;

/* Below a pattern that ends with two stars, or what the shell would match; a star matches no slash. */
static bool matches(const char *path, const char *pattern)
{
	size_t length = strlen(pattern);
	char top[PATH_MAX], start[PATH_MAX];

	if (length < 3 || strcmp(pattern + length - 3, "/**"))
		return !fnmatch(pattern, path, FNM_PATHNAME | FNM_PERIOD);
	memcpy(top, pattern, length - 3);
	top[length - 3] = 0;
	/* Some directory above the path matches what stands before the stars. */
	strcpy(start, path);
	for (char *slash = strrchr(start, '/'); slash; slash = strrchr(start, '/')) {
		*slash = 0;
		if (!fnmatch(top, start, FNM_PATHNAME | FNM_PERIOD))
			return true;
	}
	return false;
}

enum relation { APART, ABOVE, BELOW };	/* BELOW is also what is protected itself */

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
 * How a path lies to a protected one, in which `*` stands for any name and two stars for any number of names. A directory that only the two
 * stars stand for is not above it: any could be. Large and small letters are the same, as they are to some file systems of the host.
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
	if (wanted_length == 1 && *wanted == '*')
		return relation(rest, more);
	return length == wanted_length && !strncasecmp(name, wanted, length) ? relation(rest, more) : APART;
}

/*
 * Whether a change would be one of what is protected: in it, or of a directory above it, which can neither be put in another's place nor
 * be taken away with all that is in it.
 */
static bool is_protected(const char *path, unsigned effect)
{
	for (size_t i = 0; i < protected_count; i++) {
		enum relation found = relation(path, protected[i]);

		if (found == BELOW || (found == ABOVE && effect & (LIND_DOES_CREATE | LIND_DOES_REMOVE | LIND_DOES_LINK)))
			return true;
	}
	return false;
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
	if (is_protected(path, effect) || (is_below(path, confined, confined_count) && !is_below(path, inside, inside_count)))
		return false;
	if (!count)
		return true;
	for (size_t i = 0; i < count; i++)
		if (matches(path, patterns[i]))
			return true;
	return false;
}

/* What is in such a directory could be what is confined. */
static bool may_move_all_in(const char *directory)
{
	return !is_below(directory, inside, inside_count);
}

static const char *why(const char *path, unsigned effect)
{
	if (!is_protected(path, effect) && is_below(path, inside, inside_count))
		return "may not be moved from there";
	return is_protected(path, effect) || is_below(path, confined, confined_count) ? "may not be changed" : "not among what may be changed";
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

static const char *answer(const char *value)
{
	static const struct { const char *name; int number; } known[] = { { "EACCES", EACCES }, { "EPERM", EPERM }, { "EROFS", EROFS } };

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (!strcmp(value, known[i].name)) {
			guard.refusal = known[i].number;
			return NULL;
		}
	return "must be EACCES, EPERM or EROFS";
}

LIND_GUARD_CALLS

LIND_OPTION("a", "allow", "value");
LIND_OPTION("e", "errno", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'a', "allow", "PATTERN", "paths that may be changed: *, ? and [...] as in a shell, /** for everything below", allow },
		{ 'p', "protect", "PATH", "what may not be changed whatever is allowed, nor anything below: ** for any directories, * for any name; without --allow, all else may", protect },
		{ 0, "confine", "PATH", "as --protect, but not below what --inside names", confine },
		{ 0, "inside", "PATH", "where what is confined may be changed; directories are not moved from there", let_inside },
		{ 'e', "errno", "NAME", "what other changes fail with: EACCES (default), EPERM, EROFS", answer },
	};

	guard = (struct lind_guard){ .may_change = may_change, .may_move_all_in = may_move_all_in, .refusal = EACCES, .why = why };
	lind_options(options, sizeof options / sizeof *options, "Clients change only files whose paths match.", &argc, &argv);
	lind_guard_begin(&guard);
	return lind_grate_main(argc, argv);
}
