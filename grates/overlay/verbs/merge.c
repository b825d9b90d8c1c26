/*
 * Directories that were made on both sides: by a program in the overlay, and meanwhile by somebody
 * else below. Neither hides the other when changes are applied: names of both are kept, and only
 * the same name for different things is a conflict.
 */
#include "tree.h"
#include <lind/options.h>
#include <stdlib.h>
#include <string.h>

char *verb_hidden(const struct verb_list *list, const struct verb_entry *entry, bool *unseen)
{
	const struct verb_node *dir = verb_node(list, entry->dir);

	*unseen = dir && dir->merges;
	return *unseen ? verb_joined(dir->merges, entry->name) : verb_natural(list, entry);
}

/*
 * Whether the directory at this path below is another's than the one that a program saw and
 * removed: then it is younger than the one that the program made. A program that sees it knows of
 * all that is in it, but for what is in a directory that was hidden as a whole.
 */
static bool is_made_meanwhile(const struct verb_node *node, const char *there, bool unseen)
{
	struct timespec birth;

	return below_birth(there, &birth) && (unseen || verb_is_later(&birth, &node->row.btime));
}

static int by_length(const void *a, const void *b)
{
	const struct verb_entry *const *one = a, *const *other = b;
	size_t first = strlen((*one)->path), second = strlen((*other)->path);

	return (first > second) - (first < second);
}

/* The highest first: whether one merges depends on the one that it is in. */
void verb_find_merges(struct verb_list *list)
{
	const struct verb_entry **made = malloc((list->nodes_count + 1) * sizeof *made);
	size_t count = 0;

	if (!made)
		lind_die("no memory");
	for (size_t i = 0; i < list->nodes_count; i++) {
		const struct verb_node *node = &list->nodes[i];

		if (S_ISDIR(node->row.mode) && !node->row.origin && node->entry)
			made[count++] = node->entry;
	}
	if (count)
		qsort(made, count, sizeof *made, by_length);
	for (size_t i = 0; i < count; i++) {
		struct verb_node *node = verb_node(list, made[i]->ino);
		bool unseen;
		char *there = verb_hidden(list, made[i], &unseen);

		if (there && !map_get(&list->moved, there, strlen(there)) && is_made_meanwhile(node, there, unseen))
			node->merges = there;
		else
			free(there);
	}
	free(made);
}

void verb_mean_merges(const struct verb_list *list, const struct verb_change *change)
{
	struct verb_node *node = verb_node(list, change->dir);

	for (; node && !node->meant; node = node->entry ? verb_node(list, node->entry->dir) : NULL)
		node->meant = node->merges;
}
