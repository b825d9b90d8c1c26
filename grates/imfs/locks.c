/* Record locks, fcntl(2) and flock(2). The two kinds do not see each other. */
#include <stdlib.h>
#include "imfs_core.h"

static bool overlaps(const struct imfs_lock *a, const struct imfs_lock *b)
{
	return a->flock == b->flock && a->start <= b->last && b->start <= a->last;
}

bool imfs_lock_conflict(const struct imfs_node *n, const struct imfs_lock *want, struct imfs_lock *found)
{
	for (const struct imfs_lock *l = n->locks; l; l = l->next)
		if (l->owner != want->owner && overlaps(l, want) && (l->write || want->write)) {
			if (found)
				*found = *l;
			return true;
		}
	return false;
}

static int add(struct imfs_node *n, const struct imfs_lock *like, int64_t start, int64_t last)
{
	struct imfs_lock *l = malloc(sizeof *l);

	if (!l)
		return -ENOLCK;
	*l = *like;
	l->start = start;
	l->last = last;
	l->next = n->locks;
	n->locks = l;
	return 0;
}

/* Takes the range of `want` out of the owner's locks. */
static int cut(struct imfs_node *n, const struct imfs_lock *want)
{
	struct imfs_lock **at = &n->locks, *l;
	int r;

	while ((l = *at)) {
		struct imfs_lock old = *l;

		if (l->owner != want->owner || !overlaps(l, want)) {
			at = &l->next;
			continue;
		}
		*at = l->next;
		free(l);
		if (old.start < want->start && (r = add(n, &old, old.start, want->start - 1)))
			return r;
		if (old.last > want->last && (r = add(n, &old, want->last + 1, old.last)))
			return r;
	}
	return 0;
}

int imfs_lock(struct imfs_node *n, const struct imfs_lock *want, bool unlock)
{
	int r;

	if (!unlock && imfs_lock_conflict(n, want, NULL))
		return -EAGAIN;
	if ((r = cut(n, want)) || unlock)
		return r;
	return add(n, want, want->start, want->last);
}

void imfs_locks_drop(struct imfs_node *n, const void *owner)
{
	struct imfs_lock **at = &n->locks, *l;

	while ((l = *at))
		if (l->owner == owner) {
			*at = l->next;
			free(l);
		} else
			at = &l->next;
}
