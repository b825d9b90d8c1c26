/*
 * Changes that others make in the lower directory while the overlay is used. A thread watches all
 * directories that were listed by inotify(7), and changed files are looked up again. A file that
 * was changed here stays as it is. Where the kernel takes no more watches, names and attributes
 * stay as they were found.
 */
#include <pthread.h>
#include <sys/inotify.h>
#include <unistd.h>
#include "others.h"
#include "list.h"
#include "lower.h"
#include "nodes.h"
#include "watches.h"

#define NEW  (IN_CREATE | IN_MOVED_TO)
#define GONE (IN_DELETE | IN_MOVED_FROM)

static bool is_changed_here(const struct imfs_node *n)
{
	const struct imfs_under *u = n->under;

	return !u->origin || u->row || u->at_dirty || u->mapped || n->data.backing;
}

/* The next node of a tree, a directory before what is in it; NULL: that was the last. */
static struct imfs_node *next_in(struct imfs_node *top, struct imfs_node *n)
{
	if (S_ISDIR(n->mode) && n->dir.first)
		return n->dir.first->node;
	for (; n != top; n = n->names->dir)
		if (n->names->after)
			return n->names->after->node;
	return NULL;
}

/* Whether something in a tree is not as it is below. Files with several names are for next_in to
 * avoid. */
static bool is_tree_changed_here(struct imfs_node *top)
{
	struct imfs_node *n = top;

	for (; n; n = next_in(top, n))
		if (is_changed_here(n) || (n != top && (!n->names || n->names->other)))
			return true;
	return false;
}

/* Forgets a tree of which nothing was changed, its leaves first. */
static void forget_tree(struct imfs_node *top)
{
	while (top->dir.first) {
		struct imfs_node *n = top->dir.first->node;

		while (S_ISDIR(n->mode) && n->dir.first)
			n = n->dir.first->node;
		list_vanished(n);
	}
	list_vanished(top);
}

/* A name of a file that has further names is gone: the lower file is found by one of those. */
static void lose_name(struct imfs_entry *gone)
{
	struct imfs_node *n = gone->node;
	struct imfs_entry *other = n->names;
	char *origin;

	while (other && (other == gone || !other->lower || !other->dir->under->origin))
		other = other->other;
	if (!other || !(origin = lower_join(other->dir->under->origin, other->name))) {
		list_vanished(n);
		return;
	}
	node_shows(n, origin);
	imfs_dir_drop(&fs, gone);
	n->unknown = true;
}

static void forget(struct imfs_entry *e)
{
	struct imfs_node *n = e->node;

	if (S_ISDIR(n->mode) ? is_tree_changed_here(n) : is_changed_here(n))
		return;
	if (S_ISDIR(n->mode))
		forget_tree(n);
	else if (n->names->other)
		lose_name(e);
	else
		list_vanished(n);
}

/* Attributes, and contents that were read. */
static void refresh(struct imfs_node *n)
{
	if (n->unknown || is_changed_here(n))
		return;
	lower_close(n->under);
	imfs_data_drop(&fs, n);
	n->under->xattrs_known = false;
	imfs_xattr_free(&fs, n);
	know_node(&fs, n);
}

/* There is a name `dir` may not know, or there is another file by it. */
static void happened(struct imfs_node *dir, const char *name, uint32_t mask)
{
	struct imfs_entry *e = imfs_dir_find(dir, name, strlen(name));

	if (e && !e->lower) {
		e->lower = mask & NEW;
		return;
	}
	if (e && mask & (NEW | GONE))
		forget(e);
	else if (e)
		refresh(e->node);
	if (mask & NEW)
		dir->unlisted = true;
}

/* Nobody knows what has happened: all that is known is asked for when it is looked at. */
static void forget_all(void)
{
	struct imfs_under *u;

	for (int i = 0; i < watch_room(); i++)
		if ((u = watch_of(i))) {
			struct imfs_node *dir = u->node;

			dir->unlisted = true;
			for (struct imfs_entry *e = dir->dir.first; e; e = e->after)
				if (e->lower && !is_changed_here(e->node)) {
					imfs_data_drop(&fs, e->node);
					e->node->unknown = true;
				}
		}
}

static void handle(const struct inotify_event *event)
{
	struct imfs_under *dir = watch_of(event->wd);

	if (event->mask & IN_Q_OVERFLOW)
		forget_all();
	else if (dir && event->mask & IN_IGNORED)
		watch_ended(dir);
	else if (dir && event->len)
		happened(dir->node, event->name, event->mask);
	else if (dir)
		refresh(dir->node);
}

static void *listen_to(void *watcher)
{
	static char buffer[16384] __attribute__((aligned(8)));
	ssize_t got;

	while ((got = read(*(int *)watcher, buffer, sizeof buffer)) > 0 || errno == EINTR) {
		imfs_write_lock();
		for (char *at = buffer; at < buffer + got;
		    at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len)
			handle((struct inotify_event *)at);
		imfs_write_unlock();
	}
	return NULL;
}

void others_begin(void)
{
	static int watcher;
	pthread_t listener;

	if ((watcher = inotify_init1(IN_CLOEXEC)) < 0)
		return;
	if (pthread_create(&listener, NULL, listen_to, &watcher))
		close(watcher);
	else
		watch_with(watcher);
}
