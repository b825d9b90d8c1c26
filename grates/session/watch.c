/* Changes below a directory, until the client sends something. */
#include "files.h"
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#define MOST 8192 /* directories */
#define WHAT (IN_CREATE | IN_DELETE | IN_MODIFY | IN_CLOSE_WRITE | IN_ATTRIB | IN_MOVED_FROM | IN_MOVED_TO | IN_ONLYDIR)

/* The watches: their numbers, which may be any, and their paths below the directory. */
static struct watched {
	int number;
	char *below;
} watched[MOST];
static size_t count;
static int events;

static struct watched *find(int number)
{
	for (size_t i = 0; i < count; i++)
		if (watched[i].number == number)
			return &watched[i];
	return NULL;
}

static void drop(struct watched *gone)
{
	free(gone->below);
	*gone = watched[--count];
}

static int add(const char *path, const char *below)
{
	struct watched *known;
	char *copy;
	int number;

	if (count == MOST)
		return -ENOSPC;
	if ((number = inotify_add_watch(events, path, WHAT | (*below ? IN_DONT_FOLLOW : 0))) < 0)
		return -errno;
	if ((known = find(number)))
		drop(known);
	if (!(copy = strdup(below)))
		return -ENOMEM;
	watched[count++] = (struct watched){ number, copy };
	return 0;
}

/* The directories below one. If a directory cannot be watched, an overflow is reported. */
static void add_below(const char *path, const char *below, unsigned depth)
{
	DIR *dir = depth < DEEPEST ? opendir(path) : NULL;
	char next[PATH_MAX], next_below[PATH_MAX];
	struct dirent *d;

	while (dir && (d = readdir(dir))) {
		struct stat st;

		if (is_dots(d->d_name) || strlen(path) + strlen(d->d_name) + 2 > sizeof next ||
		    fstatat(dirfd(dir), d->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISDIR(st.st_mode))
			continue;
		strcat(strcat(strcpy(next, path), "/"), d->d_name);
		strcat(strcat(strcpy(next_below, below), *below ? "/" : ""), d->d_name);
		if (add(next, next_below) == -ENOSPC) {
			tell(EVENT, IN_Q_OVERFLOW, "", 0);
			break;
		}
		add_below(next, next_below, depth + 1);
	}
	if (dir)
		closedir(dir);
}

static void tell_event(const char *path, const struct inotify_event *e, bool recursive)
{
	struct watched *known = find(e->wd);
	const char *below = known ? known->below : "";
	const char *last = e->len ? e->name : "";
	char name[PATH_MAX], whole[2 * PATH_MAX];

	if (e->mask & IN_IGNORED && known)
		drop(known);
	if (e->mask & IN_IGNORED || is_temporary(last) || strlen(below) + strlen(last) + 2 > sizeof name)
		return;
	strcat(strcat(strcpy(name, below), *below && *last ? "/" : ""), last);
	tell(EVENT, e->mask, name, strlen(name));
	if (recursive && e->mask & IN_ISDIR && e->mask & (IN_CREATE | IN_MOVED_TO)) {
		strcat(strcat(strcpy(whole, path), "/"), name);
		if (!add(whole, name))
			add_below(whole, name, 1);
	}
}

static int watch_on(const char *path, bool recursive)
{
	static char buffer[16 << 10] __attribute__((aligned(8)));
	struct pollfd files[] = { { .fd = CHANNEL, .events = POLLIN }, { .fd = events, .events = POLLIN } };

	for (;;) {
		ssize_t n;

		if (poll(files, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (files[0].revents)
			return 0;
		if (!(files[1].revents & POLLIN))
			continue;
		n = read(events, buffer, sizeof buffer);
		for (ssize_t at = 0; at < n;) {
			const struct inotify_event *e = (const void *)(buffer + at);

			tell_event(path, e, recursive);
			at += (ssize_t)(sizeof *e + e->len);
		}
		tell_now();
	}
}

int file_watch(const struct ask *ask, const char *path)
{
	int r;

	if ((events = inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) < 0)
		return -errno;
	if (!(r = add(path, ""))) {
		if (ask->flags & RECURSIVE)
			add_below(path, "", 0);
		tell(BEGUN, 0, NULL, 0);
		r = watch_on(path, ask->flags & RECURSIVE);
	}
	close(events);
	while (count)
		drop(watched);
	return r;
}
