/* Clients change nothing in the tree of files: every call that would is EROFS. */
#include <errno.h>
#include <lind/guard.h>
#include <stdlib.h>
#include <string.h>

static char **allowed;
static size_t count;

/* Whether that may happen: below one of the prefixes; the prefix itself neither comes nor goes. */
static bool may_change(const char *path, unsigned effect)
{
	for (size_t i = 0; i < count; i++) {
		if (!lind_path_below(path, allowed[i]))
			continue;
		if (strcmp(path, allowed[i]) || !(effect & (LIND_DOES_CREATE | LIND_DOES_REMOVE | LIND_DOES_LINK)))
			return true;
	}
	return false;
}

static const char *allow(const char *value)
{
	struct lind_place place;
	char clean[PATH_MAX];
	const char *wrong = lind_path_clean(value, clean);
	char **more;
	int r;

	if (wrong)
		return wrong;
	/* Policies are about where files are: links are followed once, now. */
	r = lind_path_walk(NULL, lind_self(), (struct lind_arg){ 0, lind_self() }, clean, LIND_WALK_FOLLOW, &place);
	if (r)
		return strerror(-r);
	r = place.object < 0 ? ENOENT : 0;
	lind_place_done(&place);
	if (r)
		return strerror(r);
	if (!(more = realloc(allowed, (count + 1) * sizeof *more)) || !(more[count] = strdup(place.path)))
		return "out of memory";
	allowed = more;
	count++;
	return NULL;
}

LIND_GUARD_CALLS

LIND_OPTION("a", "allow", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'a', "allow", "PREFIX", "allow changes to PREFIX and everything below", allow },
	};
	static const struct lind_guard guard = { .may_change = may_change, .refusal = EROFS };

	lind_options(options, 1, "Keeps clients from changing files.", &argc, &argv);
	lind_guard_begin(&guard);
	return lind_grate_main(argc, argv);
}
