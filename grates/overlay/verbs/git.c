/*
 * Files that git keeps for itself: its objects, which are shown by their number, and its index,
 * which `git status` writes again although nothing has changed.
 */
#include "git.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "print.h"

#define DIRECTORY ".git/objects/"

static size_t hexadecimal(const char *text)
{
	return strspn(text, "0123456789abcdef");
}

/* Whether git gives this name to an object, or to a pack of objects and its parts. Other names
 * could mean something, and are shown. */
static bool is_object_name(const char *name)
{
	size_t digits = hexadecimal(name);

	if (digits == 2)
		return !name[2] ||
		    (name[2] == '/' && ((digits = hexadecimal(name + 3)) == 38 || digits == 62) && !name[3 + digits]);
	if (strncmp(name, "pack/pack-", 10))
		return false;
	name += 10;
	digits = hexadecimal(name);
	name += digits;
	return (digits == 40 || digits == 64) &&
	    (!strcmp(name, ".pack") || !strcmp(name, ".idx") || !strcmp(name, ".rev"));
}

size_t git_objects(const char *path)
{
	for (const char *at = path; (at = strstr(at, DIRECTORY)); at++)
		if (at == path || at[-1] == '/')
			return is_object_name(at + strlen(DIRECTORY)) ? (size_t)(at - path) + strlen(DIRECTORY) : 0;
	return 0;
}

static size_t objects_of(const struct verb_change *change)
{
	bool may_be =
	    (change->kind == 'A' || change->kind == 'D') && (change->type == S_IFREG || change->type == S_IFDIR);

	return may_be ? git_objects(change->path) : 0;
}

bool git_folds(struct git_folded *folded, const struct verb_list *list, size_t at)
{
	const struct verb_change *change = &list->changes[at];
	size_t length = objects_of(change);

	folded->is_first = false;
	if (!length)
		return false;
	if (length != folded->length || strncmp(change->path, folded->path, length)) {
		*folded = (struct git_folded){ .path = change->path, .length = length, .is_first = true };
		for (size_t i = at; i < list->changes_count && !strncmp(list->changes[i].path, change->path, length);
		    i++)
			if (list->changes[i].type == S_IFREG && objects_of(&list->changes[i]) == length)
				(list->changes[i].kind == 'A' ? &folded->made : &folded->removed)[0]++;
	}
	return (change->kind == 'A' ? folded->made : folded->removed) > 1;
}

void git_print_objects(const char *path, size_t length, const char *between, size_t count)
{
	char *directory = strndup(path, length);

	verb_print_name("", directory ? directory : DIRECTORY);
	printf("%s%zu objects of git", between /* ours */, count);
	free(directory);
}

static bool ends_with(const char *path, const char *end)
{
	size_t length = strlen(path), wanted = strlen(end);

	return length >= wanted && !strcmp(path + length - wanted, end) &&
	    (length == wanted || path[length - wanted - 1] == '/');
}

static uint32_t big_endian(const uint8_t *bytes, size_t size)
{
	uint32_t value = 0;

	for (size_t i = 0; i < size; i++)
		value = value << 8 | bytes[i];
	return value;
}

/* The offset of an index's extensions, if its entries have no flags that a commit could not have;
 * else 0. */
static size_t behind_entries(const uint8_t *index, size_t size, size_t hash, uint32_t count)
{
	size_t at = 12, fixed = 40 + hash + 2;

	while (count--) {
		const uint8_t *name = index + at + fixed, *end;

		/* Flags: a conflict, an entry that git shall take for unchanged, or one to be added later. */
		if (at + fixed >= size || big_endian(name - 2, 2) & 0xf000 ||
		    !(end = memchr(name, 0, size - at - fixed)))
			return 0;
		at += (fixed + (size_t)(end - name) + 8) & ~(size_t)7;
	}
	return at;
}

/*
 * Whether all entries are those of a tree that git has written (gitformat-index(5), cache tree).
 * Staging a change breaks that until the change is committed; `git status` only changes the times
 * and numbers of files.
 */
static bool is_all_of_a_tree(const uint8_t *index, size_t size, size_t hash, uint32_t count)
{
	size_t at = behind_entries(index, size, hash, count), length;
	char wanted[16];
	bool found = false;

	for (; at && at + 8 + hash <= size; at += 8 + length) {
		const uint8_t *body = index + at + 8;
		int digits = snprintf(wanted, sizeof wanted, "%c%u ", 0, count);

		length = big_endian(index + at + 4, 4);
		/* A split index goes on in another file. */
		if (length > size - at - 8 - hash || !memcmp(index + at, "link", 4))
			return false;
		found |=
		    !memcmp(index + at, "TREE", 4) && length > (size_t)digits && !memcmp(body, wanted, (size_t)digits);
	}
	return found && at == size - hash;
}

bool git_only_looked(const struct verb_change *change)
{
	uint8_t *index;
	size_t size = 0;
	uint32_t count;
	bool is = false;

	if (change->kind != 'M' || change->type != S_IFREG || !ends_with(change->path, ".git/index") ||
	    !(index = below_bytes(change->path, &size)))
		return false;
	if (size > 12 && !memcmp(index, "DIRC\0\0\0\2", 8)) {
		count = big_endian(index + 8, 4);
		is = is_all_of_a_tree(index, size, 20, count) || is_all_of_a_tree(index, size, 32, count);
	}
	free(index);
	return is;
}
