/*
 * With --started, the first program and the children that it makes are the runtime's own work: the
 * policy is about the programs that they run. A cage of theirs is under the policy from its execve
 * on, and whatever comes of it too. Nothing else can become one of theirs.
 */
#include <lind/clients.h>
#include <pthread.h>
#include <stdlib.h>
#include "seccomp.h"

struct starter {
	bool starts;
	struct starter *next; /* among those without a cage */
};

static struct starter *unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
bool only_started;

static void *new_starter(void)
{
	struct starter *starter;

	pthread_mutex_lock(&lock);
	if ((starter = unused))
		unused = starter->next;
	pthread_mutex_unlock(&lock);
	if (!starter && !(starter = malloc(sizeof *starter)))
		lind_die("out of memory for a client");
	__atomic_store_n(&starter->starts, true, __ATOMIC_RELEASE);
	return starter;
}

static bool starts(const struct starter *starter)
{
	return starter && __atomic_load_n(&starter->starts, __ATOMIC_ACQUIRE);
}

static void *start(uint64_t cage)
{
	static bool met;

	(void)cage;
	/* Under the lock of clients. */
	if (met)
		return NULL;
	met = true;
	return new_starter();
}

static void *fork_client(void *parent, uint64_t parent_cage, uint64_t cage, int spawned)
{
	(void)parent_cage;
	(void)cage;
	return starts(parent) && !spawned ? new_starter() : NULL;
}

static void exec_client(void *client, uint64_t cage)
{
	struct starter *starter = client;

	(void)cage;
	if (starter)
		__atomic_store_n(&starter->starts, false, __ATOMIC_RELEASE);
}

/* Memory of clients goes back to clients only: another thread may be asking about one that ends. */
static void exit_client(void *client, uint64_t cage, int status)
{
	struct starter *starter = client;

	(void)cage;
	(void)status;
	if (!starter)
		return;
	__atomic_store_n(&starter->starts, false, __ATOMIC_RELEASE);
	pthread_mutex_lock(&lock);
	starter->next = unused;
	unused = starter;
	pthread_mutex_unlock(&lock);
}

bool is_starter(uint64_t cage)
{
	return only_started && starts(lind_client(cage));
}

void follow_starters(void)
{
	static const struct lind_lifecycle lifecycle = {
		.start = start, .fork = fork_client, .exec = exec_client, .exit = exit_client
	};

	if (only_started)
		lind_grate_lifecycle(&lifecycle);
}
