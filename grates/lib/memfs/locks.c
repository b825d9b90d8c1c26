/* Record locks, fcntl(2) and flock(2). The two kinds do not see each other. */
#include <stdlib.h>
#include "imfs_core.h"

#define CHAIN 10 /* waiters from one to the next that are followed to find a circle, as in Linux */
#define LOOKS 10000 /* locks and waiters that are looked at meanwhile */
#define MOST  8192 /* locks of one file, as many as the kernel has of a cage */

static struct imfs_waiter *waiters; /* of all filesystems, under the lock */

static void no_wake(uint32_t *word)
{
	(void)word;
}
void (*imfs_wake)(uint32_t *word) = no_wake;

/* Some lock of this file was given up or made less. */
static void try_again(const struct imfs_node *n)
{
	for (struct imfs_waiter *w = waiters; w; w = w->next)
		if (w->node == n && !w->word) {
			w->word = 1;
			imfs_wake(&w->word);
		}
}

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

/* Whether there would be more than before, and too many. To give up the middle of a range makes
 * two of one. */
static bool too_many(const struct imfs_node *n, const struct imfs_lock *want, bool unlock)
{
	unsigned before = 0, after = !unlock;

	for (const struct imfs_lock *l = n->locks; l; l = l->next) {
		bool taken = l->owner == want->owner && overlaps(l, want);

		before++;
		after += taken ? (l->start < want->start) + (l->last > want->last) : 1;
	}
	return after > before && after > MOST;
}

int imfs_lock(struct imfs_node *n, const struct imfs_lock *want, bool unlock)
{
	int r;

	if (!unlock && imfs_lock_conflict(n, want, NULL))
		return -EAGAIN;
	if (too_many(n, want, unlock))
		return -ENOLCK;
	r = cut(n, want);
	if (!r && !unlock)
		r = add(n, want, want->start, want->last);
	/* A lock for writing may have become one for reading. */
	try_again(n);
	return r;
}

void imfs_locks_drop(struct imfs_node *n, const void *owner)
{
	struct imfs_lock **at = &n->locks, *l;
	bool any = false;

	while ((l = *at))
		if (l->owner == owner) {
			*at = l->next;
			free(l);
			any = true;
		} else
			at = &l->next;
	if (any)
		try_again(n);
}

/*
 * Whether a process that holds a conflicting lock waits, maybe over others, for one of `owner`.
 * Locks of open files and those of flock(2) do not belong to a process that could wait. `*looks` is
 * how many more may be looked at: clients decide how many there are.
 */
static bool in_a_circle(
    const struct imfs_node *n, const struct imfs_lock *want, const void *owner, int further, int *looks)
{
	for (const struct imfs_lock *l = n->locks; l && --*looks > 0; l = l->next) {
		if (l->owner == want->owner || !overlaps(l, want) || !(l->write || want->write) || l->pid < 0)
			continue;
		if (l->owner == owner)
			return true;
		for (const struct imfs_waiter *w = waiters; w && further && --*looks > 0; w = w->next)
			if (w->want.owner == l->owner && in_a_circle(w->node, &w->want, owner, further - 1, looks))
				return true;
	}
	return false;
}

int imfs_lock_wait(struct imfs_node *n, const struct imfs_lock *want, struct imfs_waiter *w)
{
	int looks = LOOKS;

	if (want->pid >= 0 && in_a_circle(n, want, want->owner, CHAIN, &looks))
		return -EDEADLK;
	*w = (struct imfs_waiter){ .next = waiters, .node = n, .want = *want };
	waiters = w;
	return 0;
}

void imfs_lock_stop(struct imfs_waiter *w)
{
	struct imfs_waiter **at = &waiters;

	while (*at != w)
		at = &(*at)->next;
	*at = w->next;
}
