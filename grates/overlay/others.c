/*
 * Changes that others make in the lower directory while the overlay is used. A thread watches all
 * directories that were listed by inotify(7), and changed files are looked up again. A file that
 * was changed here stays as it is. Where the kernel takes no more watches, names and attributes
 * stay as they were found.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/inotify.h>
#include <unistd.h>
#include "overlay.h"

#define TOLD_OF (IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR)
#define NEW     (IN_CREATE | IN_MOVED_TO)
#define GONE    (IN_DELETE | IN_MOVED_FROM)

static int watcher = -1;
static struct imfs_under **watched; /* by the number of the watch */
static int room;

void others_watch(struct imfs_under *dir)
{
	int fd = watcher < 0 || dir->watch >= 0 ? -1 : lower_dir(dir->origin), number;
	char link[32];

	if (fd < 0)
		return;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if ((number = inotify_add_watch(watcher, link, TOLD_OF)) < 0)
		return;
	if (number >= room) {
		int more = number * 2 + 64;
		struct imfs_under **grown = realloc(watched, (size_t)more * sizeof *grown);

		if (!grown) {
			inotify_rm_watch(watcher, number);
			return;
		}
		memset(grown + room, 0, (size_t)(more - room) * sizeof *grown);
		watched = grown;
		room = more;
	}
	/* The same directory in two places, by a mount: one of them is told. */
	if (watched[number])
		watched[number]->watch = -1;
	watched[number] = dir;
	dir->watch = number;
}

void others_forget(struct imfs_under *u)
{
	if (u->watch < 0)
		return;
	inotify_rm_watch(watcher, u->watch);
	watched[u->watch] = NULL;
	u->watch = -1;
}

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

/* A name of a file with others is gone: what shows through does so by one of those. */
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
	for (int i = 0; i < room; i++)
		if (watched[i]) {
			struct imfs_node *dir = watched[i]->node;

			dir->unlisted = true;
			for (struct imfs_entry *e = dir->dir.first; e; e = e->after)
				if (e->lower && !is_changed_here(e->node)) {
					imfs_data_drop(&fs, e->node);
					e->node->unknown = true;
				}
		}
}

static void told(const struct inotify_event *event)
{
	struct imfs_under *dir = event->wd >= 0 && event->wd < room ? watched[event->wd] : NULL;

	if (event->mask & IN_Q_OVERFLOW)
		forget_all();
	else if (dir && event->mask & IN_IGNORED) {
		watched[event->wd] = NULL;
		dir->watch = -1;
	} else if (dir && event->len)
		happened(dir->node, event->name, event->mask);
	else if (dir)
		refresh(dir->node);
}

static void *listen_to(void *unused)
{
	static char buffer[16384] __attribute__((aligned(8)));
	ssize_t got;

	while ((got = read(watcher, buffer, sizeof buffer)) > 0 || errno == EINTR) {
		imfs_write_lock();
		for (char *at = buffer; at < buffer + got;
		    at += sizeof(struct inotify_event) + ((struct inotify_event *)at)->len)
			told((struct inotify_event *)at);
		imfs_write_unlock();
	}
	return unused;
}

void others_begin(void)
{
	pthread_t listener;

	if ((watcher = inotify_init1(IN_CLOEXEC)) >= 0 && pthread_create(&listener, NULL, listen_to, NULL)) {
		close(watcher);
		watcher = -1;
	}
}
