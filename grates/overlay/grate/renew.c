/*
 * Reads everything again, after the state or the lower directory was changed while the lock was
 * held. Nodes that nobody holds are forgotten, and come back when they are looked for. Directories
 * and files that programs hold stay the nodes that they are, and show what their paths lead to now.
 */
#include <sys/stat.h>
#include "renew.h"
#include "list.h"
#include "lower.h"
#include "marks.h"
#include "nodes.h"
#include "saved.h"
#include "watches.h"

/* By a program: open, mapped, run, watched, or its working directory. */
static bool is_held(const struct imfs_node *n)
{
	return n->refs || n->runners || n->mappers || n->watches || n->fifo;
}

static bool can_stay(const struct imfs_node *n)
{
	const struct imfs_under *u = n->under;

	/* An instance of inotify is not a file of the overlay. */
	if (S_ISDIR(n->mode) || n->watcher)
		return true;
	return S_ISREG(n->mode) && n->names && !n->names->other && u->origin && !u->row && !u->at_dirty && !u->mapped &&
	    !n->data.backing;
}

static char *path_of(const struct imfs_node *n)
{
	char path[IMFS_PATH];
	char *joined;
	int length = n->names ? imfs_node_path(&fs, n->names->dir, path, sizeof path) : 0;

	if (length <= 0)
		return strdup("a file that was removed");
	if ((joined = malloc((size_t)length + n->names->length + 2)))
		sprintf(joined, "%s/%s", path, n->names->name);
	return joined;
}

static bool find_held(struct imfs_node *n, void *held)
{
	if (!is_held(n) || can_stay(n))
		return true;
	*(char **)held = path_of(n);
	return false;
}

bool renew_possible(char **held)
{
	*held = NULL;
	return node_each(find_held, held);
}

static bool forget_mark(struct imfs_node *n, void *unused)
{
	(void)unused;
	n->under->kept = false;
	return true;
}

/* It and the directories above it. */
static bool mark_kept(struct imfs_node *n, void *unused)
{
	(void)unused;
	if (!is_held(n) || n->watcher)
		return true;
	if (!S_ISDIR(n->mode)) {
		n->under->kept = true;
		n = n->names->dir;
	}
	/* A removed directory is not below the root any more. */
	for (; !n->under->kept && !n->dir.removed; n = n->dir.parent)
		n->under->kept = true;
	return true;
}

static void forget_below(struct imfs_node *top);

static void forget_one(struct imfs_node *n)
{
	if (S_ISDIR(n->mode))
		forget_below(n);
	list_vanished(n);
}

/* All that is not kept, the leaves first. A file may have several names, which all go at once, so
 * the list is begun again behind each. */
static void forget_below(struct imfs_node *top)
{
	for (struct imfs_entry *e = top->dir.first; e;) {
		if (e->node->under->kept) {
			e = e->after;
			continue;
		}
		forget_one(e->node);
		e = top->dir.first;
	}
	for (struct imfs_entry *e = top->dir.first; e; e = e->after)
		if (S_ISDIR(e->node->mode))
			forget_below(e->node);
}

/* As if it had been made just now. */
static void reset(struct imfs_node *n)
{
	struct imfs_under *u = n->under;

	imfs_data_drop(&fs, n);
	imfs_xattr_free(&fs, n);
	lower_close(u);
	watch_forget(u);
	marks_forget_left_out(u);
	free(u->stored);
	u->stored = NULL;
	u->stored_count = 0;
	u->stored_end = 0;
	u->cut = INT64_MAX;
	u->hidden = u->logged = 0;
	u->row = u->first_row = u->foreign = u->blind = u->xattrs_known = false;
	node_shows(n, NULL);
	n->unlisted = S_ISDIR(n->mode);
}

/* The row of a name in the state. */
struct wanted {
	const char *name;
	uint64_t ino;
	bool found;
};

static int each_row(void *to, const char *name, uint64_t ino)
{
	struct wanted *wanted = to;

	if (strcmp(name, wanted->name))
		return 0;
	wanted->found = true;
	wanted->ino = ino;
	return 1;
}

/* The number that it has now, if no other node has that. */
static bool takes_number(struct imfs_node *n, uint64_t ino)
{
	if (n->ino == ino)
		return true;
	if (node_by_ino(ino))
		return false;
	node_renumber(n, ino);
	return true;
}

static bool shows_row(struct imfs_entry *e, uint64_t ino)
{
	struct imfs_node *n = e->node;
	struct store_node row;

	if (!ino || store_get(store, ino, &row) != 1 || (row.mode & S_IFMT) != (n->mode & S_IFMT) ||
	    !takes_number(n, ino))
		return false;
	reset(n);
	node_from_row(n, &row);
	e->stored = true;
	e->lower = e->moved = false;
	return true;
}

static bool shows_lower(struct imfs_entry *e)
{
	const struct imfs_under *dir = e->dir->under;
	struct imfs_node *n = e->node;
	struct statx st;
	char *origin = dir->origin ? lower_join(dir->origin, e->name) : NULL;

	if (!origin || lower_stat(origin, &st) || (st.stx_mode & S_IFMT) != (n->mode & S_IFMT) ||
	    (lower_is_home(&st) && !dir->foreign && !takes_number(n, st.stx_ino))) {
		free(origin);
		return false;
	}
	reset(n);
	node_shows(n, origin);
	n->under->foreign = dir->foreign;
	e->lower = true;
	e->stored = e->moved = false;
	return !know_node(&fs, n);
}

/* Whether a name that a program holds leads to something of its kind. */
static bool is_there(struct imfs_entry *e)
{
	struct wanted wanted = { .name = e->name };

	if (store && e->dir->under->row)
		store_names(store, row_ino(e->dir), each_row, &wanted);
	return wanted.found ? shows_row(e, wanted.ino) : shows_lower(e);
}

static void settle_below(struct imfs_node *dir)
{
	for (struct imfs_entry *e = dir->dir.first, *next; e; e = next) {
		struct imfs_node *n = e->node;

		next = e->after;
		imfs_node_hold(n);
		if (!is_there(e)) {
			if (S_ISDIR(n->mode))
				forget_below(n);
			if (n->names)
				list_vanished(n);
		} else if (S_ISDIR(n->mode)) {
			settle_below(n);
		}
		imfs_node_drop(&fs, n);
	}
}

void renew(void (*know_root)(void))
{
	marks_forgetting = true;
	node_each(forget_mark, NULL);
	node_each(mark_kept, NULL);
	fs.root->under->kept = true;
	forget_below(fs.root);
	lower_forget();
	reset(fs.root);
	know_root();
	settle_below(fs.root);
	marks_forgetting = false;
}
