/* Changes leave the state: they have been made in the lower directory, or are thrown away. */
#include "apply.h"
#include "../state/layers.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int unname_source(struct store *store, const struct verb_list *list, const struct verb_change *change)
{
	const struct verb_entry *left =
	    change->kind == 'R' ? map_get(&list->left, change->from, strlen(change->from)) : NULL;

	return left ? store_unname(store, left->dir, left->name) : 0;
}

static int leave_one(struct store *store, const struct verb_list *list, const struct verb_change *change)
{
	int r = store_unname(store, change->dir, change->name);

	r = r ? r : unname_source(store, list, change);
	if (!r && change->node && !S_ISDIR(change->node->row.mode) && change->node->row.nlink < 2) {
		r = store_forget(store, change->node->row.ino);
		change->node->forgotten = true;
	}
	return r;
}

/*
 * When what still lies below at other names of a file was last changed. Not what a clock says, nor
 * the time of the file that has just been put there: times are those of the last tick, and what
 * changes a file after it was looked at is later than its own time, but not than others'.
 */
static struct timespec last_change(const struct verb_list *list, const struct verb_node *node)
{
	struct timespec last = { 0 };
	struct stat st;

	for (size_t i = 0; i < list->changes_count; i++)
		if (list->changes[i].node == node && below_look(list->changes[i].path, &st) &&
		    st.st_ino != node->row.stamp.ino &&
		    (st.st_ctim.tv_sec > last.tv_sec ||
			(st.st_ctim.tv_sec == last.tv_sec && st.st_ctim.tv_nsec > last.tv_nsec)))
			last = st.st_ctim;
	return last;
}

/* Updates the row of a file that was made or moved below, and that shows through from then on. */
static int stay(struct store *store, const struct verb_list *list, const struct verb_change *change)
{
	int r = unname_source(store, list, change);
	struct store_node *row = &change->node->row;
	struct stat st;

	if (r || (change->kind == 'M' && change->type == S_IFDIR))
		return r;
	row->origin = change->path;
	row->origin_size = row->size;
	if (below_look(change->path, &st))
		row->stamp = (struct store_stamp){ st.st_ino, st.st_size, st.st_mtim, st.st_ctim };
	/* Its other names are there as they were until now: what changes later is somebody else's doing
	 * (add_found). */
	if (!S_ISDIR(row->mode) && !change->node->stale)
		row->ctime = last_change(list, change->node);
	change->node->forgotten = true;
	return store_put(store, &change->node->row);
}

/* The lower file of a file that stays may be elsewhere now. */
static int follow_moves(struct store *store, const struct verb_list *list, const struct apply *apply)
{
	int r = 0;

	for (size_t i = 0; i < list->nodes_count && !r; i++) {
		struct verb_node *node = &list->nodes[i];
		char *moved = node->row.origin && !node->forgotten ? apply_moved(apply, node->row.origin) : NULL;

		if (!moved)
			continue;
		node->row.origin = moved;
		r = store_put(store, &node->row);
		free(moved);
	}
	return r;
}

static bool stays(const struct apply *apply, size_t i)
{
	return apply->work[i].failed || apply->work[i].unfinished;
}

/* A file that is gone and the directory in its place, or the other way round, have one entry. */
static bool is_replaced_by_what_stays(const struct apply *apply, size_t i)
{
	const struct verb_change *change = &apply->list->changes[i];

	return change->kind == 'D' && i + 1 < apply->list->changes_count && change[1].dir == change->dir &&
	    !strcmp(change[1].name, change->name) && stays(apply, i + 1);
}

int apply_leave(struct store *store, const struct verb_list *list, const struct apply *apply)
{
	int r = 0;

	if (apply && apply->all && !apply->failed)
		return store_rollback(store, NULL);
	for (size_t i = 0; i < list->changes_count && !r; i++) {
		if (apply && (apply->work[i].failed || is_replaced_by_what_stays(apply, i)))
			continue;
		r = apply && apply->work[i].unfinished ? stay(store, list, &list->changes[i])
						       : leave_one(store, list, &list->changes[i]);
	}
	return r || !apply ? r : follow_moves(store, list, apply);
}
