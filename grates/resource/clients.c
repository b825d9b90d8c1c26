/* The life of clients, and of their counts, from birth to end. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "clients.h"
#include "files.h"
#include "limits.h"
#include "memfile.h"
#include "memory.h"
#include "watch.h"

static struct client *add(uint64_t cage, const char *name, struct space *space)
{
	struct client *c = calloc(1, sizeof *c);

	if (!c)
		lind_die("out of memory");
	c->cage = cage;
	c->born = now();
	c->look_from = c->born + SETTLES;
	c->space = space;
	c->used[THREADS] = 1;
	snprintf(c->name, sizeof c->name, "%s", name);
	for (int i = 0; i < RATES; i++)
		c->rates[i].per_second = each_rates[i];
	pthread_mutex_init(&c->lock, NULL);
	client_add(c);
	if (limited(CPU) || limited(WALL))
		watch_soon();
	else if (limited(MEMORY))
		watch_memory();
	return c;
}

/* Its program is in its memory already, and it has made no call that adds to that. */
static void look_at_program(struct client *c)
{
	if (!limited(MEMORY))
		return;
	c->look_from = 0;
	memory_look(c);
	if (c->used[MEMORY] > limits[EACH][MEMORY] ||
	    __atomic_load_n(&tree_used[MEMORY], __ATOMIC_RELAXED) > limits[TREE][MEMORY])
		watch_soon();
}

/* The first program: what it is and has was not asked for. */
static void *start(uint64_t cage)
{
	struct client *c = add(cage, first_name, space_new());

	__atomic_fetch_add(&tree_used[CAGES], 1, __ATOMIC_RELAXED);
	__atomic_fetch_add(&tree_used[THREADS], 1, __ATOMIC_RELAXED);
	files_begun(c);
	note_peak(CAGES);
	note_peak(THREADS);
	look_at_program(c);
	return c;
}

/* Its place among cages and threads, and its memory, were reserved by the handler of the call. */
static void *fork_(void *parent_, uint64_t parent_cage, uint64_t cage, int spawned)
{
	struct client *parent = parent_, *c;

	(void)parent_cage;
	if (!parent)
		return start(cage);
	c = add(
	    cage, spawned ? parent->next_name : parent->name, birth.borrows ? space_share(parent->space) : space_new());
	memory_copied(c, birth.memory);
	memory_files_copied(c, parent);
	files_found(c, files_highest(parent) + __atomic_load_n(&parent->used[THREADS], __ATOMIC_RELAXED), birth.files);
	birth = (struct birth){ 0 };
	if (__atomic_load_n(&ending, __ATOMIC_SEQ_CST))
		kill((pid_t)cage, SIGKILL);
	if (spawned && is_of_line(parent))
		look_at_program(c);
	else if (limited(MEMORY))
		watch_memory();
	return c;
}

/* The other threads end, and so does the use of a parent's memory. */
static void exec(void *client, uint64_t cage)
{
	struct client *c = client;
	uint64_t threads, left;

	(void)cage;
	if (!c)
		return;
	/* A thread that is being made will give back what was reserved for it. */
	left = 1 + __atomic_load_n(&c->births, __ATOMIC_SEQ_CST);
	threads = __atomic_exchange_n(&c->used[THREADS], left, __ATOMIC_SEQ_CST);
	__atomic_fetch_sub(&tree_used[THREADS], threads - left, __ATOMIC_RELAXED);
	pthread_mutex_lock(&c->lock);
	memcpy(c->name, c->next_name, sizeof c->name);
	pthread_mutex_unlock(&c->lock);
	clients_lock();
	if (__atomic_load_n(&c->space->cages, __ATOMIC_RELAXED) > 1) {
		space_drop(c->space);
		c->space = space_new();
		c->used[MEMORY] = 0;
		c->look_from = now() + SETTLES;
	}
	clients_unlock();
	if (limited(MEMORY))
		watch_memory();
}

static void exit_(void *client, uint64_t cage, int status)
{
	struct client *c = client;
	uint64_t cpu;

	(void)status;
	if (!c)
		return;
	clients_lock();
	client_remove(c);
	/* At the end the clock may say a little less than when it was last looked at. */
	cpu = cpu_of(cage);
	__atomic_fetch_add(&cpu_ended, cpu > c->used[CPU] ? cpu : c->used[CPU], __ATOMIC_RELAXED);
	clients_unlock();
	memory_leave(c);
	memory_files_leave(c);
	files_leave(c);
	__atomic_fetch_sub(&tree_used[THREADS], c->used[THREADS], __ATOMIC_RELAXED);
	__atomic_fetch_sub(&tree_used[CAGES], 1, __ATOMIC_RELAXED);
	free(c->files);
	free(c);
}

const struct lind_lifecycle lifecycle = { .start = start, .fork = fork_, .exec = exec, .exit = exit_, .end = report };
