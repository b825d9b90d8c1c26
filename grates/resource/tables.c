/* The clients, and the start and waking of the watcher. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "tables.h"

/* The thread that signals all clients may hold it already. */
static pthread_mutex_t lock;
static struct client *all;

static pthread_mutex_t watching = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake;
static void *(*watcher)(void *);
static bool there, soon;
/* The end of time if no time is set, or it is awake. */
static int64_t sleeps_until = INT64_MAX;

__attribute__((constructor)) static void make_locks(void)
{
	pthread_mutexattr_t attr;
	pthread_condattr_t monotonic;

	pthread_mutexattr_init(&attr);
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&lock, &attr);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&wake, &monotonic);
}

bool ending, wants_report, learns;
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

void client_add(struct client *c)
{
	clients_lock();
	c->next = all;
	c->link = &all;
	if (all)
		all->link = &c->next;
	all = c;
	clients_unlock();
}

void client_remove(struct client *c)
{
	clients_lock();
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
	clients_unlock();
}

void each_client(void (*act)(struct client *c, void *with), void *with)
{
	pthread_mutex_lock(&lock);
	for (struct client *c = all; c; c = c->next)
		act(c, with);
	pthread_mutex_unlock(&lock);
}

static void signal_client(struct client *c, void *with)
{
	kill((pid_t)c->cage, *(int *)with);
}

void signal_tree(int signal)
{
	each_client(signal_client, &signal);
	watch_soon();
}

/* Whether it is a grate of the line, by what only such are told: they may have the number of a
 * file, and there is none of this number. */
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

void watch_with(void *(*thread)(void *))
{
	watcher = thread;
}

/* The lock is held. */
static void make_thread(void)
{
	pthread_t thread;

	if ((errno = pthread_create(&thread, NULL, watcher, NULL)))
		lind_die("cannot start the watcher: %s", strerror(errno));
	pthread_detach(thread);
	there = true;
}

void watch_soon(void)
{
	pthread_mutex_lock(&watching);
	if (!there && watcher)
		make_thread();
	soon = true;
	pthread_cond_signal(&wake);
	pthread_mutex_unlock(&watching);
}

void watch_memory(void)
{
	bool looks;

	pthread_mutex_lock(&watching);
	looks = there && sleeps_until != INT64_MAX;
	pthread_mutex_unlock(&watching);
	if (!looks)
		watch_soon();
}

void watch_wait(int64_t until)
{
	struct timespec t = { .tv_sec = until / 1000000000, .tv_nsec = (long)(until % 1000000000) };

	pthread_mutex_lock(&watching);
	while (!soon && now() < until) {
		sleeps_until = until;
		if (until == INT64_MAX)
			pthread_cond_wait(&wake, &watching);
		else
			pthread_cond_timedwait(&wake, &watching, &t);
	}
	soon = false;
	sleeps_until = INT64_MAX;
	pthread_mutex_unlock(&watching);
}
