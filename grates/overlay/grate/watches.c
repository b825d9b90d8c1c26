/* Directories of which the host says what happens in them, by inotify(7). Where it takes no more
 * watches, a directory is not watched. */
#include "watches.h"
#include <stdio.h>
#include <sys/inotify.h>
#include "lower.h"

#define TOLD_OF (IN_MODIFY | IN_ATTRIB | IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR)

static int watcher = -1;
static struct imfs_under **watched; /* by the number of the watch */
static int room;

void watch_with(int fd)
{
	watcher = fd;
}

void watch_dir(struct imfs_under *dir)
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

void watch_forget(struct imfs_under *u)
{
	if (u->watch < 0)
		return;
	inotify_rm_watch(watcher, u->watch);
	watched[u->watch] = NULL;
	u->watch = -1;
}

void watch_ended(struct imfs_under *dir)
{
	watched[dir->watch] = NULL;
	dir->watch = -1;
}

int watch_room(void)
{
	return room;
}

struct imfs_under *watch_of(int number)
{
	return number >= 0 && number < room ? watched[number] : NULL;
}
