/*
 * The names that a program on lind-boot's command line may have: as typed, with a suffix, in the
 * folders of programs, and with the other of `-` and `_` before `grate`. The kernel looks for all
 * of them. To a grate that decides about paths, the typed name is a path like any other: then the
 * grate that starts the program goes through the names. Does not use the C library, because some
 * users of this header run without it.
 */
#ifndef LIND_SDK_PROGRAM_H
#define LIND_SDK_PROGRAM_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_NAMES 12 /* of one without a slash, those in /bin come first */

static inline size_t program_add(char *to, size_t at, const char *text)
{
	while (*text && at < PATH_MAX)
		to[at++] = *text++;
	return at;
}

/* The place of the `-` or `_` of imfs_grate, which begins at `base` and ends at `end`; `end` for
 * other names. */
static inline size_t program_mark(const char *name, size_t base, size_t end)
{
	static const char grate[] = "grate";
	size_t stem = base, length = sizeof grate - 1;

	while (stem < end && name[stem] != '.')
		stem++;
	if (stem < base + length + 1 || (name[stem - length - 1] != '-' && name[stem - length - 1] != '_'))
		return end;
	for (size_t i = 0; i < length; i++)
		if (name[stem - length + i] != grate[i])
			return end;
	return stem - length - 1;
}

/* Whether a name without a slash is one that grates have. Those are lind-boot's, and not looked
 * for in the root. */
static inline bool program_is_grate(const char *name)
{
	size_t end = 0;

	for (; name[end]; end++)
		if (name[end] == '/')
			return false;
	return program_mark(name, 0, end) != end;
}

/* Whether it names a grate of lind-boot's, and never a file: %imfs_grate. Grates that decide
 * about paths pass it on. */
static inline bool program_is_marked(const char *path)
{
	return *path == '%' && program_is_grate(path + 1);
}

/* Writes name `n`; false if there is none, or it is too long for a path. */
static inline bool program_name(const char *typed, unsigned n, char to[static PATH_MAX])
{
	static const char folders[2][6] = { "", "/bin/" }, suffixes[3][7] = { "", ".cwasm", ".wasm" };
	/* Marks such as %} are in no folder, and a composer counts what is started. */
	unsigned folder = *typed == '%' ? n / 3 % 2 : !(n / 3 % 2);
	size_t start, end, base, mark;

	/* The second is for grates that a program starts for itself. */
	if (program_is_grate(typed)) {
		end = program_add(to, program_add(to, 0, n ? "" : "%"), typed);
		to[end == PATH_MAX ? 0 : end] = 0;
		return n < 2 && end < PATH_MAX;
	}
	start = program_add(to, 0, folders[folder]);
	end = program_add(to, start, typed);
	base = start;
	for (size_t i = start; i < end; i++)
		if (to[i] == '/')
			base = i + 1;
	if (folder && base > start)
		return false;
	if (n >= 6) {
		if ((mark = program_mark(to, base, end)) == end)
			return false;
		to[mark] = to[mark] == '-' ? '_' : '-';
	}
	end = program_add(to, end, suffixes[n % 3]);
	if (end == PATH_MAX)
		return false;
	to[end] = 0;
	return true;
}

/* Whether the next name is worth a try. The kernel says ENOTDIR of a grate of lind-boot's to who
 * is not of its line, ENOENT where there is none. */
static inline bool program_missing(const char *typed, int64_t r)
{
	return r == -ENOTDIR || (r == -ENOENT && !program_is_grate(typed));
}

#endif
