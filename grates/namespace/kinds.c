/*
 * The kind of a descriptor: the kind of its file, and the flags with which that is open. A
 * descriptor that matches the options is inside from the moment that it is made or gets the flag,
 * and stays inside: a grate that keeps state for it has to see its end. The grates before this one
 * are asked for the kind.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include "kinds.h"
#include "links.h"

enum {
	REGULAR = 1,
	DIRECTORY = 1 << 1,
	LINK = 1 << 2,
	PIPE = 1 << 3,
	SOCKET = 1 << 4,
	CHARDEV = 1 << 5,
	TTY = 1 << 6,
	BLOCKDEV = 1 << 7,
	/* Without a name in a directory: ANON is all of these, and what else there is. */
	ANON = 1 << 8,
	MEMFD = 1 << 9,
	EPOLL = 1 << 10,
	EVENTFD = 1 << 11,
	TIMERFD = 1 << 12,
	SIGNALFD = 1 << 13,
	INOTIFY = 1 << 14,
	PIDFD = 1 << 15,
};

enum {
	READABLE = 1,
	WRITABLE = 2,
	READONLY = 4,
	WRITEONLY = 8,
	READWRITE = 16,
	APPEND = 32,
	NONBLOCK = 64,
	BY_PATH = 128
};

struct word {
	const char *name;
	uint32_t bit;
};

static const struct word kinds[] = {
	{ "file", REGULAR },
	{ "dir", DIRECTORY },
	{ "link", LINK },
	{ "pipe", PIPE },
	{ "fifo", PIPE },
	{ "socket", SOCKET },
	{ "chardev", CHARDEV },
	{ "tty", TTY },
	{ "blockdev", BLOCKDEV },
	{ "anon", ANON },
	{ "memfd", MEMFD },
	{ "epoll", EPOLL },
	{ "eventfd", EVENTFD },
	{ "timerfd", TIMERFD },
	{ "signalfd", SIGNALFD },
	{ "inotify", INOTIFY },
	{ "pidfd", PIDFD },
	{ NULL, 0 },
};

static const struct word flags[] = {
	{ "readable", READABLE },
	{ "writable", WRITABLE },
	{ "readonly", READONLY },
	{ "writeonly", WRITEONLY },
	{ "readwrite", READWRITE },
	{ "append", APPEND },
	{ "nonblock", NONBLOCK },
	{ "path", BY_PATH },
	{ NULL, 0 },
};

/* Of the first one has to hold, if there is one; of the second, which stood after `!`, none may. */
struct list {
	uint32_t some, none;
};

static struct list wanted_kinds, wanted_flags;

static const char *unknown(const char *word, const struct word *words)
{
	static char text[320];
	int at = snprintf(text, sizeof text, "no such word: %.32s; there are", word);

	for (const struct word *w = words; w->name && at < (int)sizeof text; w++)
		at += snprintf(text + at, sizeof text - (size_t)at, "%s %s", w == words ? "" : ",", w->name);
	return text;
}

static const char *add_words(const char *value, const struct word *words, struct list *list)
{
	uint32_t *to = *value == '!' ? &list->none : &list->some;
	char *copy = strdup(value + (*value == '!')), *save, *name;
	const char *wrong = NULL;

	if (!copy)
		return "out of memory";
	name = strtok_r(copy, ", \t", &save);
	if (!name)
		wrong = unknown("", words);
	for (; name && !wrong; name = strtok_r(NULL, ", \t", &save)) {
		const struct word *w = words;

		while (w->name && strcmp(w->name, name))
			w++;
		*to |= w->bit;
		wrong = w->name ? NULL : unknown(name, words);
	}
	free(copy);
	by_fd = by_property = true;
	return wrong;
}

const char *add_fd_kinds(const char *value)
{
	return add_words(value, kinds, &wanted_kinds);
}

const char *add_fd_flags(const char *value)
{
	const char *wrong = add_words(value, flags, &wanted_flags);

	flags_change = (wanted_flags.some | wanted_flags.none) & (APPEND | NONBLOCK);
	return wrong;
}

static bool chosen_by(const struct list *list, uint32_t bits)
{
	return (!list->some || bits & list->some) && !(bits & list->none);
}

static int64_t control(struct lind_arg fd, uint32_t command)
{
	return lind_call_plain(SYS_fcntl, fd.cage, (uint32_t)fd.value, command, 0, 0);
}

bool identify(struct lind_arg fd, struct stat *st)
{
	struct lind_arg none = { 0, fd.cage };

	return lind_call(SYS_fstat, fd.cage, fd, lind_mine(st), none, none, none, none) >= 0;
}

/* By its name in /proc: the kernel has no other word for it. */
static uint32_t nameless_kind(struct lind_arg fd)
{
	static const struct word names[] = {
		{ "anon_inode:[eventpoll]", EPOLL },
		{ "anon_inode:[eventfd]", EVENTFD },
		{ "anon_inode:[timerfd]", TIMERFD },
		{ "anon_inode:[signalfd]", SIGNALFD },
		{ "anon_inode:inotify", INOTIFY },
		{ "anon_inode:[inotify]", INOTIFY },
		{ "anon_inode:[pidfd]", PIDFD },
		{ "pidfd:", PIDFD },
		{ "/memfd:", MEMFD },
		{ NULL, 0 },
	};
	char text[PATH_MAX];
	const struct word *w = names;

	if (fd_link(fd.cage, (uint32_t)fd.value, text) < 0)
		return ANON;
	while (w->name && strncmp(w->name, text, strlen(w->name)))
		w++;
	return ANON | w->bit;
}

static uint32_t kind_of(struct lind_arg fd, const struct stat *st)
{
	struct lind_arg none = { 0, fd.cage };
	struct termios settings = { 0 };

	switch (st->st_mode & S_IFMT) {
	case S_IFREG:
		return !st->st_nlink && control(fd, F_GET_SEALS) >= 0 && nameless_kind(fd) & MEMFD ? ANON | MEMFD
												   : REGULAR;
	case S_IFDIR:
		return DIRECTORY;
	case S_IFLNK:
		return LINK;
	case S_IFIFO:
		return PIPE;
	case S_IFSOCK:
		return SOCKET;
	case S_IFBLK:
		return BLOCKDEV;
	case S_IFCHR:
		return CHARDEV |
		    (lind_call(SYS_ioctl, fd.cage, fd, (struct lind_arg){ TCGETS, fd.cage }, lind_mine(&settings), none,
			 none, none) < 0
			    ? 0
			    : TTY);
	default:
		return nameless_kind(fd);
	}
}

/* A file that came in a message is the host's: there signalfd and pidfd are of another kind. */
uint32_t fd_lasting_kind(struct lind_arg fd, const struct stat *st)
{
	uint32_t kind = st->st_mode & S_IFMT;

	return kind ? kind : ANON | (nameless_kind(fd) & (EPOLL | EVENTFD | INOTIFY));
}

static uint32_t flag_words(uint32_t open)
{
	static const uint32_t access[] = { READABLE | READONLY, WRITABLE | WRITEONLY, READABLE | WRITABLE | READWRITE,
		0 };

	if (open & O_PATH)
		return BY_PATH;
	return access[open & O_ACCMODE] | (open & O_APPEND ? APPEND : 0) | (open & O_NONBLOCK ? NONBLOCK : 0);
}

bool fd_matches(uint64_t cage, uint32_t number)
{
	struct lind_arg fd = { number, cage };
	int64_t open = control(fd, F_GETFL);
	struct stat st;

	if (open < 0 || !chosen_by(&wanted_flags, flag_words((uint32_t)open)))
		return false;
	return !(wanted_kinds.some | wanted_kinds.none) ||
	    (identify(fd, &st) && chosen_by(&wanted_kinds, kind_of(fd, &st)));
}

bool fd_made_outside(struct client *client, uint32_t fd)
{
	uint32_t seen = atomic_load(&client->fds_seen);

	if (!by_property)
		return false;
	while (seen <= fd && !atomic_compare_exchange_weak(&client->fds_seen, &seen, fd + 1))
		;
	if (!fd_matches(client->cage, fd))
		return false;
	fd_mark(client, fd);
	return true;
}

bool fd_look(struct client *client, uint32_t fd)
{
	if (fd_made_outside(client, fd))
		return true;
	/* With threads hold looks, at a copy that stays what it is. */
	if (!atomic_load(&client->threads) && lind_call_plain(SYS_fcntl, client->cage, fd, F_GETFD, 0, 0) >= 0)
		fd_set_word(client, fd, HELD);
	return false;
}

void mark_what_matches(struct client *client, uint32_t end)
{
	for (uint32_t fd = 0; fd < end; fd++)
		if (!(fd_word(client, fd) & INSIDE) && fd_matches(client->cage, fd))
			fd_mark(client, fd);
}
