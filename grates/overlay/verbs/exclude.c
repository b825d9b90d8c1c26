/* Patterns of --exclude, as git and rsync have them: a name at any depth, or with a slash a path
 * from the top. All below a match is left out too. */
#include "verb.h"
#include <fnmatch.h>
#include <limits.h>
#include <lind/options.h>
#include <stdlib.h>
#include <string.h>

struct verb_pattern {
	const char *text;
	bool anchored;  /* it has a slash before its end */
	bool directory;  /* it has one at its end */
};

const char *verb_exclude(struct verb_options *options, const char *value)
{
	size_t length = strlen(value), count = options->excludes_count;
	struct verb_pattern *more = realloc(options->excludes, (count + 1) * sizeof *more), *new = more + count;
	char *text = strdup(value);

	if (!more || !text)
		return "out of memory";
	options->excludes = more;
	new->directory = length && text[length - 1] == '/';
	while (length && text[length - 1] == '/')
		text[--length] = 0;
	new->anchored = strchr(text, '/');
	while (*text == '/' || !strncmp(text, "./", 2))
		text += *text == '/' ? 1 : 2;
	if (!*text)
		return "a pattern has a name in it";
	new->text = text;
	options->excludes_count++;
	return NULL;
}

static bool is_name(const char *pattern, size_t pattern_length, const char *name, size_t length)
{
	char wanted[NAME_MAX + 1], has[NAME_MAX + 1];

	if (pattern_length > NAME_MAX || length > NAME_MAX)
		return false;
	memcpy(wanted, pattern, pattern_length);
	wanted[pattern_length] = 0;
	memcpy(has, name, length);
	has[length] = 0;
	return !fnmatch(wanted, has, 0);
}

/* Whether a path, or a directory above it, matches. `itself`: a match of the whole path counts;
 * otherwise only one of a directory above. */
static bool matches(const char *pattern, const char *path, bool itself)
{
	size_t wanted = strcspn(pattern, "/"), length = strcspn(path, "/");
	const char *rest = pattern + wanted + !!pattern[wanted];

	if (!*pattern)
		return *path || itself;
	if (!*path)
		return false;
	if (wanted == 2 && !strncmp(pattern, "**", 2)) {
		for (; !matches(rest, path, itself); path += length + 1)
			if (!path[length = strcspn(path, "/")])
				return false;
		return true;
	}
	return is_name(pattern, wanted, path, length) && matches(rest, path + length + !!path[length], itself);
}

static bool is_left_out(const struct verb_pattern *pattern, const char *path, bool directory)
{
	bool itself = directory || !pattern->directory;

	if (pattern->anchored)
		return matches(pattern->text, path, itself);
	for (;; path++) {
		if (matches(pattern->text, path, itself))
			return true;
		if (!(path = strchr(path, '/')))
			return false;
	}
}

bool verb_is_excluded(const struct verb_options *options, const char *path, bool directory)
{
	for (size_t i = 0; i < options->excludes_count; i++)
		if (is_left_out(&options->excludes[i], path, directory))
			return true;
	return false;
}
