/* Clients change only files whose paths match a pattern. */
#include <errno.h>
#include <fnmatch.h>
#include <lind/guard.h>
#include <stdlib.h>
#include <string.h>

static char **patterns;
static size_t count;
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

static bool may_change(const char *path, unsigned effect)
{
	(void)effect;
	for (size_t i = 0; i < count; i++)
		if (matches(path, patterns[i]))
			return true;
	return false;
}

static const char *allow(const char *value)
{
	char **more;

	if (*value != '/')
		return "must begin with /";
	if (strlen(value) >= PATH_MAX)
		return "too long";
	if (!(more = realloc(patterns, (count + 1) * sizeof *more)) || !(more[count] = strdup(value)))
		return "out of memory";
	patterns = more;
	count++;
	return NULL;
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
		{ 'e', "errno", "NAME", "what other changes fail with: EACCES (default), EPERM, EROFS", answer },
	};

	guard = (struct lind_guard){ may_change, EACCES };
	lind_options(options, 2, "Clients change only files whose paths match.", &argc, &argv);
	lind_guard_begin(&guard);
	return lind_grate_main(argc, argv);
}
