/* Watches of nodes by inotify(7): watch.c. The lock is held for writing, but to ask whether a
 * node is watched. */
#ifndef IMFS_WATCH_H
#define IMFS_WATCH_H

#include <sys/inotify.h>
#include "imfs_core.h"

/* An event of inotify(7) that is still to be read. */
struct imfs_event {
	struct imfs_event *next;
	int32_t number;
	uint32_t mask, cookie;
	uint16_t length;
	char name[];
};

/* An instance of inotify, which is a node of no type. */
struct imfs_watcher {
	struct imfs *fs;
	struct imfs_watch *watches;
	struct imfs_event *first, *last, **at_end;
	struct imfs_event *overflow; /* kept for when there are too many; NULL while it waits */
	uint32_t count;
	uint64_t bytes;   /* that those which wait take of a buffer */
	int32_t next_number;
	int fd, rang;   /* for the grate: an instance of the kernel's, and what made that readable for ours */
};

/* A node that is watched. */
struct imfs_watch {
	struct imfs_watch *next_of_node, **at_node;
	struct imfs_watch *next_own, **at_own;
	struct imfs_watcher *watcher;
	int32_t number;
	uint32_t mask;
};

struct imfs_watcher *imfs_watcher_new(
    struct imfs *fs, const struct imfs_cred *cred, struct imfs_node **node); /* NULL: no memory */
void imfs_watcher_end(struct imfs_watcher *watcher);
void imfs_watcher_add(
    struct imfs_watcher *watcher, int32_t number, uint32_t mask, uint32_t cookie, const char *name, size_t length);
void imfs_watcher_took(struct imfs_watcher *watcher); /* the first event was told */
int64_t imfs_watch(struct imfs_watcher *watcher, struct imfs_node *n, uint32_t mask); /* its number */
int imfs_unwatch(struct imfs_watcher *watcher, int32_t number);
/* The first event waits now; the watcher is about to end. Nothing if not set. The lock is held
 * for writing. */
extern void (*imfs_watcher_rings)(struct imfs_watcher *watcher);
extern void (*imfs_watcher_ended)(struct imfs_watcher *watcher);
/* The bytes that an event takes of a buffer: 16 bytes, and the name with a NUL in units of as
 * many. */
static inline uint64_t imfs_event_size(const struct imfs_event *event)
{
	return 16u + (event->length ? (event->length + 16u) / 16u * 16u : 0);
}
extern unsigned imfs_watches; /* how many there are */
void imfs_tell_slow(struct imfs_node *n, uint32_t mask);
void imfs_tell_itself_slow(struct imfs_node *n, uint32_t mask);
void imfs_tell_name_slow(
    struct imfs_node *dir, uint32_t mask, const struct imfs_node *n, const char *name, size_t length);
void imfs_tell_move_slow(
    const struct imfs_at *from, const struct imfs_at *to, struct imfs_node *n, struct imfs_node *replaced);
bool imfs_is_watched_slow(const struct imfs_node *n);
void imfs_watches_end(struct imfs_node *n); /* the node is about to go */
/* Something happened to a file: who watches it, or a directory where it has a name, is told. */
static inline void imfs_tell(struct imfs_node *n, uint32_t mask)
{
	if (imfs_watches)
		imfs_tell_slow(n, mask);
}
/* The same, but not in directories. */
static inline void imfs_tell_itself(struct imfs_node *n, uint32_t mask)
{
	if (imfs_watches)
		imfs_tell_itself_slow(n, mask);
}
/* A name of `n` has come to a directory, or is gone. */
static inline void imfs_tell_name(
    struct imfs_node *dir, uint32_t mask, const struct imfs_node *n, const char *name, size_t length)
{
	if (imfs_watches)
		imfs_tell_name_slow(dir, mask, n, name, length);
}
/* Whether somebody watches for reads. */
static inline bool imfs_is_watched(const struct imfs_node *n)
{
	return imfs_watches && imfs_is_watched_slow(n);
}

#endif
