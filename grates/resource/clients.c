/* The clients: who they are, and what is theirs from birth to end. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "resource.h"

/* Whoever signals all clients may hold it already. */
static pthread_mutex_t lock;
static struct client *all;

__attribute__((constructor)) static void make_lock(void)
{
	pthread_mutexattr_t attr;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&lock, &attr);
}

bool ending;
_Thread_local struct birth birth;
const char *first_name = "";

int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

void clients_lock(void)
{
	pthread_mutex_lock(&lock);
}

void clients_unlock(void)
{
	pthread_mutex_unlock(&lock);
}

void each_client(void (*act)(struct client *c, void *with), void *with)
{
	pthread_mutex_lock(&lock);
	for (struct client *c = all; c; c = c->next)
		act(c, with);
	pthread_mutex_unlock(&lock);
}

void signal_client(struct client *c, void *with)
{
	kill((pid_t)c->cage, *(int *)with);
}

void signal_tree(int signal)
{
	each_client(signal_client, &signal);
	watch_soon();
}

/* Whether it is a grate of the line, by what only such are told: they may have the number of a file, and there is none of this number. */
bool is_of_line(const struct client *c)
{
	return lind_call_plain(SYS_host_file, c->cage, UINT64_MAX, 0, 0, 0) == -EBADF;
}

static void end_client(struct client *c, void *late)
{
	if (*(const bool *)late || !is_of_line(c))
		kill((pid_t)c->cage, SIGKILL);
}

void end_programs(int64_t at)
{
	static int64_t since;
	bool late;

	clients_lock();
	if (!since)
		since = at;
	late = at - since > GRACE;
	each_client(end_client, &late);
	clients_unlock();
}

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
	pthread_mutex_lock(&lock);
	c->next = all;
	c->link = &all;
	if (all)
		all->link = &c->next;
	all = c;
	pthread_mutex_unlock(&lock);
	if (limited(CPU) || limited(WALL))
		watch_soon();
	return c;
}

/* Its program is in its memory already, and it has made no call that adds to that. */
static void look_at_program(struct client *c)
{
	if (!limited(MEMORY))
		return;
	c->look_from = 0;
	memory_look(c);
	if (c->used[MEMORY] > limits[EACH][MEMORY] || __atomic_load_n(&tree_used[MEMORY], __ATOMIC_RELAXED) > limits[TREE][MEMORY])
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
	c = add(cage, spawned ? parent->next_name : parent->name, birth.borrows ? space_share(parent->space) : space_new());
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
	pthread_mutex_lock(&lock);
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	/* At the end the clock may say a little less than when it was last looked at. */
	cpu = cpu_of(cage);
	__atomic_fetch_add(&cpu_ended, cpu > c->used[CPU] ? cpu : c->used[CPU], __ATOMIC_RELAXED);
	pthread_mutex_unlock(&lock);
	memory_leave(c);
	memory_files_leave(c);
	files_leave(c);
	__atomic_fetch_sub(&tree_used[THREADS], c->used[THREADS], __ATOMIC_RELAXED);
	__atomic_fetch_sub(&tree_used[CAGES], 1, __ATOMIC_RELAXED);
	free(c->files);
	free(c);
}

const struct lind_lifecycle lifecycle = { .start = start, .fork = fork_, .exec = exec, .exit = exit_, .end = report };
