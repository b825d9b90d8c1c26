/* Watches of files by inotify(7), and the events that are still to be read. The grate does the
 * reading and waiting. */
#include <stdlib.h>
#include "watch.h"

#define MOST_EVENTS  16384u /* that wait, as on Linux */
#define FIRST_WATCH  (1 << 24) /* smaller ones are the kernel's */
#define KEPT_OF_MASK (IN_ALL_EVENTS | IN_ONESHOT | IN_EXCL_UNLINK)

static void no_ring(struct imfs_watcher *watcher)
{
	(void)watcher;
}
void (*imfs_watcher_rings)(struct imfs_watcher *) = no_ring;
void (*imfs_watcher_ended)(struct imfs_watcher *) = no_ring;

unsigned imfs_watches;
static uint32_t last_cookie;

static size_t cost_of(size_t length)
{
	return sizeof(struct imfs_event) + length + 1;
}

struct imfs_watcher *imfs_watcher_new(struct imfs *fs, const struct imfs_cred *cred, struct imfs_node **node)
{
	struct imfs_watcher *watcher = imfs_charge(fs, sizeof *watcher) ? NULL : calloc(1, sizeof *watcher);

	if (!watcher)
		return NULL;
	watcher->fs = fs;
	watcher->next_number = FIRST_WATCH;
	watcher->at_end = &watcher->first;
	watcher->overflow = calloc(1, cost_of(0));
	/* As Linux shows it: of no type. */
	if (!watcher->overflow || !(*node = imfs_node_new(fs, 0600, cred, NULL))) {
		fs->used -= sizeof *watcher;
		free(watcher->overflow);
		free(watcher);
		return NULL;
	}
	(*node)->watcher = watcher;
	return watcher;
}

static bool is_told(const struct imfs_event *last, int32_t number, uint32_t mask, const char *name, size_t length)
{
	return last && last->number == number && last->mask == mask && !(mask & IN_IGNORED) && last->length == length &&
	    !memcmp(last->name, name, length);
}

static struct imfs_event *event_new(struct imfs_watcher *w, size_t length)
{
	struct imfs_event *event;

	if (w->count >= MOST_EVENTS || imfs_charge(w->fs, cost_of(length)))
		return NULL;
	if (!(event = malloc(cost_of(length))))
		w->fs->used -= cost_of(length);
	return event;
}

/* Puts an event at the end of those that wait. Of some that are alike only the first waits; that
 * there were too many is told once. */
void imfs_watcher_add(
    struct imfs_watcher *w, int32_t number, uint32_t mask, uint32_t cookie, const char *name, size_t length)
{
	struct imfs_event *event;

	if (is_told(w->last, number, mask, name, length))
		return;
	if (!(event = event_new(w, length))) {
		if (!(event = w->overflow))
			return;
		w->overflow = NULL;
		number = -1, mask = IN_Q_OVERFLOW, cookie = 0, length = 0;
	}
	*event = (struct imfs_event){ .number = number, .mask = mask, .cookie = cookie, .length = (uint16_t)length };
	memcpy(event->name, name, length);
	event->name[length] = 0;
	*w->at_end = w->last = event;
	w->at_end = &event->next;
	w->bytes += imfs_event_size(event);
	if (!w->count++)
		imfs_watcher_rings(w);
}

void imfs_watcher_took(struct imfs_watcher *w)
{
	struct imfs_event *event = w->first;

	w->count--;
	w->bytes -= imfs_event_size(event);
	if (!(w->first = event->next)) {
		w->at_end = &w->first;
		w->last = NULL;
	}
	if (event->mask == IN_Q_OVERFLOW && !w->overflow) {
		w->overflow = event;
		return;
	}
	w->fs->used -= cost_of(event->length);
	free(event);
}

/* Nobody is told. */
static void unwatch(struct imfs_watch *watch)
{
	*watch->at_node = watch->next_of_node;
	if (watch->next_of_node)
		watch->next_of_node->at_node = watch->at_node;
	*watch->at_own = watch->next_own;
	if (watch->next_own)
		watch->next_own->at_own = watch->at_own;
	watch->watcher->fs->used -= sizeof *watch;
	imfs_watches--;
	free(watch);
}

static void end_watch(struct imfs_watch *watch)
{
	struct imfs_watcher *w = watch->watcher;
	int32_t number = watch->number;

	unwatch(watch);
	imfs_watcher_add(w, number, IN_IGNORED, 0, "", 0);
}

int64_t imfs_watch(struct imfs_watcher *w, struct imfs_node *n, uint32_t mask)
{
	struct imfs_watch *watch = n->watches;

	while (watch && watch->watcher != w)
		watch = watch->next_of_node;
	if (watch) {
		if (mask & IN_MASK_CREATE)
			return -EEXIST;
		watch->mask = (mask & IN_MASK_ADD ? watch->mask : 0) | (mask & KEPT_OF_MASK);
		return watch->number;
	}
	if (w->next_number == INT32_MAX || imfs_charge(w->fs, sizeof *watch))
		return -ENOSPC;
	if (!(watch = malloc(sizeof *watch))) {
		w->fs->used -= sizeof *watch;
		return -ENOMEM;
	}
	*watch = (struct imfs_watch){
		.next_of_node = n->watches,
		.at_node = &n->watches,
		.next_own = w->watches,
		.at_own = &w->watches,
		.watcher = w,
		.number = w->next_number++,
		.mask = mask & KEPT_OF_MASK,
	};
	if (watch->next_of_node)
		watch->next_of_node->at_node = &watch->next_of_node;
	if (watch->next_own)
		watch->next_own->at_own = &watch->next_own;
	n->watches = w->watches = watch;
	imfs_watches++;
	return watch->number;
}

int imfs_unwatch(struct imfs_watcher *w, int32_t number)
{
	struct imfs_watch *watch = w->watches;

	while (watch && watch->number != number)
		watch = watch->next_own;
	if (!watch)
		return -EINVAL;
	end_watch(watch);
	return 0;
}

void imfs_watcher_end(struct imfs_watcher *w)
{
	while (w->watches)
		unwatch(w->watches);
	while (w->first)
		imfs_watcher_took(w);
	imfs_watcher_ended(w);
	w->fs->used -= sizeof *w;
	free(w->overflow);
	free(w);
}

static void tell(struct imfs_node *n, uint32_t mask, uint32_t cookie, const char *name, size_t length)
{
	struct imfs_watch *next;

	for (struct imfs_watch *watch = n->watches; watch; watch = next) {
		next = watch->next_of_node;
		if (!(watch->mask & mask & IN_ALL_EVENTS))
			continue;
		imfs_watcher_add(watch->watcher, watch->number, mask, cookie, name, length);
		if (watch->mask & IN_ONESHOT)
			end_watch(watch);
	}
}

static uint32_t kind(const struct imfs_node *n)
{
	return S_ISDIR(n->mode) ? IN_ISDIR : 0;
}

void imfs_tell_itself_slow(struct imfs_node *n, uint32_t mask)
{
	/* Of its own end and its own move it does not say what it is. */
	tell(n, mask & (IN_DELETE_SELF | IN_MOVE_SELF) ? mask : mask | kind(n), 0, "", 0);
}

void imfs_tell_slow(struct imfs_node *n, uint32_t mask)
{
	for (struct imfs_entry *e = n->names; e; e = e->other)
		tell(e->dir, mask | kind(n), 0, e->name, e->length);
	imfs_tell_itself_slow(n, mask);
}

void imfs_tell_name_slow(
    struct imfs_node *dir, uint32_t mask, const struct imfs_node *n, const char *name, size_t length)
{
	tell(dir, mask | kind(n), 0, name, length);
}

void imfs_tell_move_slow(
    const struct imfs_at *from, const struct imfs_at *to, struct imfs_node *n, struct imfs_node *replaced)
{
	uint32_t cookie = ++last_cookie;

	tell(from->dir, IN_MOVED_FROM | kind(n), cookie, from->name, from->length);
	tell(to->dir, IN_MOVED_TO | kind(n), cookie, to->name, to->length);
	if (replaced)
		imfs_tell_itself_slow(replaced, IN_ATTRIB);
	imfs_tell_itself_slow(n, IN_MOVE_SELF);
}

bool imfs_is_watched_slow(const struct imfs_node *n)
{
	for (const struct imfs_entry *e = n->names; e; e = e->other)
		if (e->dir->watches)
			return true;
	return n->watches;
}

void imfs_watches_end(struct imfs_node *n)
{
	imfs_tell_itself_slow(n, IN_DELETE_SELF);
	while (n->watches)
		end_watch(n->watches);
}
