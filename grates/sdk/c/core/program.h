/*
 * The names that a program on lind-boot's command line may have: as typed, with a suffix, in the folders of programs, and with the other of
 * `-` and `_` before `grate`. The kernel looks for all of them by itself. Where a grate on the way to it decides about paths, what was typed is a path like
 * any other: then whoever starts the program goes through the names. Without the C library, which not everybody here has.
 */
#ifndef LIND_SDK_PROGRAM_H
#define LIND_SDK_PROGRAM_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_NAMES 18	/* the first is the one that was typed */

static inline size_t program_add(char *to, size_t at, const char *text)
{
	while (*text && at < PATH_MAX)
		to[at++] = *text++;
	return at;
}

/* The place of the `-` or `_` of imfs_grate, which begins at `base` and ends at `end`; `end` for other names. */
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

/* Writes name `n`; false if there is none, or it is too long for a path. */
static inline bool program_name(const char *typed, unsigned n, char to[static PATH_MAX])
{
	static const char folders[3][9] = { "", "/grates/", "/bin/" }, suffixes[3][7] = { "", ".cwasm", ".wasm" };
	unsigned folder = n / 3 % 3;
	size_t start = program_add(to, 0, folders[folder]), end = program_add(to, start, typed), base = start, mark;

	for (size_t i = start; i < end; i++)
		if (to[i] == '/')
			base = i + 1;
	if (folder && base > start)
		return false;
	if (n >= 9) {
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

/* Whether the next name is worth a try. */
static inline bool program_missing(int64_t r)
{
	return r == -ENOENT || r == -ENOTDIR;
}

#endif
