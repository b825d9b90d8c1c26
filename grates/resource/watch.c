/*
 * The watcher: a thread of the grate that looks at what no call says: time, and the memory that
 * programs begin with.
 *
 * It sleeps for as long as no limit can be reached: all processors together use so much time and no
 * more. It is not there before it is needed: to start a thread takes longer than most grates do.
 * Limits of memory need it from the start: tables grow without a call.
 */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "limits.h"
#include "memory.h"
#include "watch.h"

#define SECOND 1000000000ll
/* A limit on time is noticed this much late at most. */
#define LATE 5000000ll
/* How often memory is checked that no call reports. */
#define OFTEN (SECOND / 4)

static int64_t began;
static unsigned processors;

uint64_t cpu_ended;

struct look {
	int64_t at;
	int64_t next;  /* when to look again */
	uint64_t cpu;  /* of all clients */
	struct client *first; /* any, to be named */
	struct client *worst; /* which used most */
	uint64_t worst_cpu;
	struct {
		struct client *c;
		enum scope scope;
		enum what what;
	} hit;
};

static void next_by(struct look *l, int64_t at)
{
	if (at < l->next)
		l->next = at;
}

/* With `used` of `max` processor time: all processors may spend the rest at once. */
static void next_by_cpu(struct look *l, uint64_t used, uint64_t max)
{
	uint64_t rest = (max - used) / processors;

	next_by(l, l->at + (int64_t)(rest > (uint64_t)LATE ? rest : (uint64_t)LATE));
}

static void note(struct look *l, struct client *c, enum scope scope, enum what what)
{
	if (!l->hit.c && (!c->reported[what] || action_on(what) == KILL)) {
		l->hit.c = c;
		l->hit.scope = scope;
		l->hit.what = what;
	}
}

static void look_at(struct client *c, void *with)
{
	struct look *l = with;
	uint64_t cpu = 0;

	if (limited(CPU)) {
		cpu = cpu_of(c->cage);
		c->used[CPU] = cpu;
		l->cpu += cpu;
		if (limits[EACH][CPU] != UNLIMITED && cpu >= limits[EACH][CPU])
			note(l, c, EACH, CPU);
		else if (limits[EACH][CPU] != UNLIMITED)
			next_by_cpu(l, cpu, limits[EACH][CPU]);
	}
	if (!l->worst || cpu >= l->worst_cpu) {
		l->worst = c;
		l->worst_cpu = cpu;
	}
	c->used[WALL] = (uint64_t)(l->at - c->born);
	if (c->used[WALL] >= limits[EACH][WALL])
		note(l, c, EACH, WALL);
	else if (limits[EACH][WALL] != UNLIMITED)
		next_by(l, c->born + (int64_t)limits[EACH][WALL]);
	if (limited(MEMORY) && l->at >= c->look_from && pthread_mutex_trylock(&c->space->lock) == 0) {
		pthread_mutex_unlock(&c->space->lock);
		memory_look(c);
		if (c->used[MEMORY] > limits[EACH][MEMORY])
			note(l, c, EACH, MEMORY);
	}
	if (limited(MEMORY))
		next_by(l, l->at + OFTEN);
}

/* A limit of no call has no call to fail: what a program holds when it starts ends it. */
static void act(struct look *l)
{
	struct client *c = l->hit.c;

	if (l->hit.what == MEMORY && action_on(MEMORY) == FAIL) {
		(void)hit(c, l->hit.scope, MEMORY, 0, "its program");
		kill((pid_t)c->cage, SIGKILL);
	} else
		(void)hit(c, l->hit.scope, l->hit.what, 0, "");
}

static int64_t look(void)
{
	struct look l = { .at = now(), .next = INT64_MAX };

	clients_lock();
	l.cpu = __atomic_load_n(&cpu_ended, __ATOMIC_RELAXED);
	each_client(look_at, &l);
	tree_used[CPU] = l.cpu;
	tree_used[WALL] = (uint64_t)(l.at - began);
	if (l.worst) {
		if (l.cpu >= limits[TREE][CPU])
			note(&l, l.worst, TREE, CPU);
		else if (limits[TREE][CPU] != UNLIMITED)
			next_by_cpu(&l, l.cpu, limits[TREE][CPU]);
		if (tree_used[WALL] >= limits[TREE][WALL])
			note(&l, l.worst, TREE, WALL);
		else if (limits[TREE][WALL] != UNLIMITED)
			next_by(&l, began + (int64_t)limits[TREE][WALL]);
		if (__atomic_load_n(&tree_used[MEMORY], __ATOMIC_RELAXED) > limits[TREE][MEMORY])
			note(&l, l.worst, TREE, MEMORY);
	}
	if (l.hit.c)
		act(&l);
	if (__atomic_load_n(&ending, __ATOMIC_RELAXED)) {
		/* End clients that were born meanwhile. */
		end_programs(l.at);
		next_by(&l, l.at + LATE);
	}
	clients_unlock();
	return l.next;
}

static void *watch(void *unused)
{
	(void)unused;
	int64_t next = 0;

	for (;;) {
		watch_wait(next);
		next = look();
	}
	return NULL;
}

void watch_begins(void)
{
	cpu_set_t set;

	began = now();
	processors = sched_getaffinity(0, sizeof set, &set) == 0 ? (unsigned)CPU_COUNT(&set) : 0;
	if (!processors)
		processors = 1;
	if (!lind_explains())
		watch_with(watch);
	if (limited(CPU) || limited(WALL))
		watch_soon();
}

static void line(enum what what, uint64_t used)
{
	char text[40], max[40];

	if (limits[TREE][what] == UNLIMITED)
		lind_log("used %s: %s", what_names[what], amount_text(what, used, text, sizeof text));
	else
		lind_log("used %s: %s of %s", what_names[what], amount_text(what, used, text, sizeof text),
		    amount_text(what, limits[TREE][what], max, sizeof max));
}

static FILE *learned;

const char *set_learn(const char *path)
{
	int fd = lind_open_file(path, NULL, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || !(learned = fdopen(fd, "w")))
		return strerror(errno);
	learns = true;
	return NULL;
}

/* Of those that have been killed and not ended yet. */
static void add_cpu(struct client *c, void *sum)
{
	uint64_t cpu = cpu_of(c->cage);

	*(uint64_t *)sum += cpu > c->used[CPU] ? cpu : c->used[CPU];
}

/* In bytes, nanoseconds and numbers: who reads it makes limits of it. */
static void write_peaks(uint64_t cpu)
{
	static const enum what peaks[] = { MEMORY, CAGES, THREADS, FILES, WRITE_FILE };

	fprintf(learned, "cpu = %llu\n", (unsigned long long)cpu);
	for (size_t i = 0; i < sizeof peaks / sizeof *peaks; i++) {
		note_peak(peaks[i]);
		fprintf(learned, "\"%s\" = %llu\n", what_names[peaks[i]], (unsigned long long)tree_peak[peaks[i]]);
	}
	if (fclose(learned))
		lind_log("cannot write the learned limits: %s", strerror(errno));
	learned = NULL;
}

void report(int status)
{
	uint64_t cpu;

	(void)status;
	if (!wants_report && !learns)
		return;
	clients_lock();
	cpu = __atomic_load_n(&cpu_ended, __ATOMIC_RELAXED);
	each_client(add_cpu, &cpu);
	clients_unlock();
	tree_used[CPU] = cpu;
	note_peak(CPU);
	if (learned)
		write_peaks(cpu);
	if (!wants_report)
		return;
	line(CPU, cpu);
	line(WALL, (uint64_t)(now() - began));
	for (enum what what = READ; what < WHATS; what++)
		if (counted(what))
			line(what, __atomic_load_n(&tree_used[what], __ATOMIC_RELAXED));
}
