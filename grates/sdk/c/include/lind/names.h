/*
 * The names of a path one after the other, where the texts of symbolic links are put in front of
 * what is left: the part that all walks of a path have in common. It makes no call. The walk says
 * what a name leads to, and what `..` means.
 *
 *	lind_names_begin(&names, path);
 *	while (lind_names_next(&names, &name))
 *		if (it is a link and is to be followed)
 *			lind_names_follow(&names, text of the link);
 */
#ifndef LIND_NAMES_H
#define LIND_NAMES_H

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LIND_LINKS_MOST 40 /* links followed in one path, as on Linux */

struct lind_names {
	char rest[2 * PATH_MAX]; /* what is still to go is in it from `at` on */
	size_t at;
	int links;
};

/* A name, without a NUL at its end; valid until a link is followed. */
struct lind_name {
	const char *text;
	size_t length;
	bool last; /* no other follows */
	bool slash; /* a slash follows: it has to be a directory */
};

/* 0, or -ENAMETOOLONG. */
static inline int lind_names_begin(struct lind_names *names, const char *path)
{
	size_t length = strlen(path);

	names->at = 0;
	names->links = 0;
	names->rest[0] = 0;
	if (length >= PATH_MAX)
		return -ENAMETOOLONG;
	memcpy(names->rest, path, length + 1);
	return 0;
}

/* Whether there is one. */
static inline bool lind_names_next(struct lind_names *names, struct lind_name *name)
{
	const char *after;

	names->at += strspn(names->rest + names->at, "/");
	name->text = names->rest + names->at;
	name->length = strcspn(name->text, "/");
	after = name->text + name->length;
	name->slash = *after == '/';
	name->last = !after[strspn(after, "/")];
	/* The slashes stay, for a link that is put in front of them. */
	names->at += name->length;
	return name->length;
}

/* No more names: the walk has arrived by other means. */
static inline void lind_names_end(struct lind_names *names)
{
	names->at = strlen(names->rest);
}

/* Counts a link that is followed, by its text or not. 0, or -ELOOP. */
static inline int lind_names_link(struct lind_names *names)
{
	return ++names->links > LIND_LINKS_MOST ? -ELOOP : 0;
}

/* Puts the text of a link in front of what is left. 0, 1 where it starts at the root, -ELOOP,
 * -ENOENT for an empty text, -ENAMETOOLONG. */
static inline int lind_names_follow(struct lind_names *names, const char *text)
{
	size_t length = strlen(text), left = strlen(names->rest + names->at);

	if (lind_names_link(names))
		return -ELOOP;
	if (!length)
		return -ENOENT;
	if (length + left + 1 > sizeof names->rest)
		return -ENAMETOOLONG;
	memmove(names->rest + length, names->rest + names->at, left + 1);
	memcpy(names->rest, text, length);
	names->at = 0;
	return *text == '/';
}

#ifdef __cplusplus
}
#endif
#endif
