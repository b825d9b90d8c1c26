/* The kind of a descriptor, and whether that puts it inside. */
#ifndef NAMESPACE_KINDS_H
#define NAMESPACE_KINDS_H

#include "tables.h"

struct stat;
const char *add_fd_kinds(const char *value);
const char *add_fd_flags(const char *value);
bool identify(struct lind_arg fd, struct stat *st);
/* The kind that it also has for a receiver of a message; not 0. */
uint32_t fd_lasting_kind(struct lind_arg fd, const struct stat *st);
bool fd_matches(uint64_t cage, uint32_t fd);
void mark_what_matches(struct client *client, uint32_t end);
/* By what it is, where that decides: a number that has just got a file outside is inside after
 * all. */
bool fd_made_outside(struct client *client, uint32_t fd);
/* By what it is, where that decides and nobody has looked yet: a clamp in a clamp does not see
 * descriptors come about. */
bool fd_look(struct client *client, uint32_t fd);

/* Whether a descriptor is inside. An unknown one (of no cage, of none of our clients, or beyond
 * the table) counts as inside. */
static inline bool fd_inside(struct lind_arg fd)
{
	struct client *client = fd.cage ? lind_client(fd.cage) : NULL;
	uint32_t word = fd_word(client, (uint32_t)fd.value);

	if (!client || (uint32_t)fd.value >= LIND_FDS || word & INSIDE)
		return true;
	return by_property && !(word & HELD) && fd_look(client, (uint32_t)fd.value);
}

#endif
