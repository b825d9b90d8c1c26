/* See fdtable.h. */
#include "fdtable.h"
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The highest value of `lind-boot --files`. */
#define MAX_FD 65536u

/* Growing and freezing surround calls that seldom block. A thread that has waited this long goes
 * on. */
#define PATIENCE_SECONDS 2

void (*fd_state_drop)(struct lind_fd_state *state);

/* How many growths this thread is in the middle of. */
static _Thread_local uint32_t growing_here;

static void hold(struct lind_fd_state *state)
{
	if (state)
		__atomic_fetch_add(&state->refs, 1, __ATOMIC_RELAXED);
}

void lind_fd_put(struct lind_fd_state *state)
{
	if (state && __atomic_sub_fetch(&state->refs, 1, __ATOMIC_ACQ_REL) == 0 && fd_state_drop)
		fd_state_drop(state);
}

struct fd_table *fd_table_new(void)
{
	struct fd_table *t = calloc(1, sizeof *t);

	if (t) {
		pthread_mutex_init(&t->lock, NULL);
		pthread_cond_init(&t->changed, NULL);
	}
	return t;
}

void fd_table_free(struct fd_table *t)
{
	for (uint32_t i = 0; i < t->room; i++)
		lind_fd_put(t->entries[i].state);
	free(t->entries);
	free(t);
}

static int make_room(struct fd_table *t, uint32_t fd)
{
	uint32_t room = t->room ? t->room : 32;
	struct fd_entry *entries;

	if (fd < t->room)
		return 0;
	if (fd >= MAX_FD)
		return -EBADF;
	while (room <= fd)
		room *= 2;
	if (!(entries = realloc(t->entries, room * sizeof *entries)))
		return -ENOMEM;
	memset(entries + t->room, 0, (room - t->room) * sizeof *entries);
	t->entries = entries;
	t->room = room;
	return 0;
}

/* Waits until `count` is 0. The lock is held. */
static void until_none(struct fd_table *t, const uint32_t *count)
{
	struct timespec end;

	if (!*count)
		return;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += PATIENCE_SECONDS;
	while (*count)
		if (pthread_cond_timedwait(&t->changed, &t->lock, &end) == ETIMEDOUT)
			break;
}

/* The old state, whose reference is the caller's to give back when the lock is not held. */
static struct lind_fd_state *replace(struct fd_entry *e, struct lind_fd_state *state, bool cloexec)
{
	struct lind_fd_state *old = e->state;

	hold(state);
	*e = (struct fd_entry){ state, e->generation + 1, cloexec, false };
	return old;
}

int fd_table_copy(struct fd_table *t, struct fd_table *from)
{
	uint32_t used;
	int r = 0;

	pthread_mutex_lock(&from->lock);
	for (used = from->room; used && !from->entries[used - 1].state; used--)
		;
	if (used && !(r = make_room(t, used - 1)))
		for (uint32_t i = 0; i < used; i++) {
			hold(from->entries[i].state);
			t->entries[i] = from->entries[i];
		}
	pthread_mutex_unlock(&from->lock);
	return r;
}

int fd_table_set(struct fd_table *t, uint32_t fd, struct lind_fd_state *state, bool cloexec)
{
	struct lind_fd_state *old = NULL;
	int r = 0;

	pthread_mutex_lock(&t->lock);
	if (!growing_here && t->frozen)
		until_none(t, &t->frozen);
	if (!(r = make_room(t, fd)))
		old = replace(&t->entries[fd], state, cloexec);
	pthread_mutex_unlock(&t->lock);
	lind_fd_put(old);
	return r;
}

struct fd_entry fd_table_get(struct fd_table *t, uint32_t fd, bool wait)
{
	struct fd_entry found = { 0 };

	pthread_mutex_lock(&t->lock);
	if (wait && !growing_here)
		until_none(t, &t->growing);
	if (fd < t->room)
		found = t->entries[fd];
	hold(found.state);
	pthread_mutex_unlock(&t->lock);
	return found;
}

void fd_table_clear(struct fd_table *t, uint32_t fd, uint32_t generation)
{
	struct lind_fd_state *old = NULL;

	pthread_mutex_lock(&t->lock);
	if (!growing_here && t->frozen)
		until_none(t, &t->frozen);
	if (fd < t->room && t->entries[fd].state && t->entries[fd].generation == generation)
		old = replace(&t->entries[fd], NULL, false);
	pthread_mutex_unlock(&t->lock);
	lind_fd_put(old);
}

bool fd_table_doubt(struct fd_table *t, uint32_t first, uint32_t last, uint32_t *generation)
{
	bool any = false;

	pthread_mutex_lock(&t->lock);
	for (uint32_t fd = first; fd < t->room && fd <= last; fd++)
		if (t->entries[fd].state) {
			t->entries[fd].doubtful = true;
			*generation = t->entries[fd].generation;
			any = true;
		}
	pthread_mutex_unlock(&t->lock);
	return any;
}

void fd_table_cloexec(struct fd_table *t, uint32_t fd, bool cloexec)
{
	pthread_mutex_lock(&t->lock);
	if (fd < t->room)
		t->entries[fd].cloexec = cloexec;
	pthread_mutex_unlock(&t->lock);
}

/* The other threads end, wherever they are. */
void fd_table_exec(struct fd_table *t)
{
	pthread_mutex_lock(&t->lock);
	t->growing = t->frozen = 0;
	for (uint32_t i = 0; i < t->room; i++)
		t->entries[i].doubtful |= t->entries[i].state && t->entries[i].cloexec;
	pthread_mutex_unlock(&t->lock);
}

void fd_table_grow(struct fd_table *t)
{
	pthread_mutex_lock(&t->lock);
	until_none(t, &t->frozen);
	t->growing++;
	growing_here++;
	pthread_mutex_unlock(&t->lock);
}

void fd_table_grown(struct fd_table *t)
{
	pthread_mutex_lock(&t->lock);
	t->growing -= t->growing > 0;
	growing_here -= growing_here > 0;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}

void fd_table_freeze(struct fd_table *t)
{
	pthread_mutex_lock(&t->lock);
	until_none(t, &t->growing);
	t->frozen++;
	pthread_mutex_unlock(&t->lock);
}

void fd_table_thaw(struct fd_table *t)
{
	pthread_mutex_lock(&t->lock);
	t->frozen -= t->frozen > 0;
	pthread_cond_broadcast(&t->changed);
	pthread_mutex_unlock(&t->lock);
}
