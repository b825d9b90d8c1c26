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
	uint64_t cage; /* 0 when the policy is about it */
	struct starter *next; /* among those without a cage */
};

static struct starter *unused, nobody;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
bool only_started;

static void *new_starter(uint64_t cage)
{
	struct starter *starter;

	pthread_mutex_lock(&lock);
	if ((starter = unused))
		unused = starter->next;
	pthread_mutex_unlock(&lock);
	if (!starter && !(starter = malloc(sizeof *starter)))
		lind_die("out of memory for a client");
	__atomic_store_n(&starter->cage, cage, __ATOMIC_RELEASE);
	return starter;
}

static bool starts(const struct starter *starter, uint64_t cage)
{
	return starter && __atomic_load_n(&starter->cage, __ATOMIC_ACQUIRE) == cage;
}

static void *start(uint64_t cage)
{
	static bool met;

	/* Under the lock of clients. */
	if (met)
		return &nobody;
	met = true;
	return new_starter(cage);
}

static void *fork_client(void *parent, uint64_t parent_cage, uint64_t cage, int spawned)
{
	return starts(parent, parent_cage) && !spawned ? new_starter(cage) : &nobody;
}

static void exec_client(void *client, uint64_t cage)
{
	struct starter *starter = client;

	if (starts(starter, cage))
		__atomic_store_n(&starter->cage, 0, __ATOMIC_RELEASE);
}

/* Memory of clients goes back to clients only: another thread may be asking about one that ends. It
 * is not mistaken for the next one there, which has another id. */
static void exit_client(void *client, uint64_t cage, int status)
{
	struct starter *starter = client;

	(void)cage;
	(void)status;
	if (!starter || starter == &nobody)
		return;
	__atomic_store_n(&starter->cage, 0, __ATOMIC_RELEASE);
	pthread_mutex_lock(&lock);
	starter->next = unused;
	unused = starter;
	pthread_mutex_unlock(&lock);
}

bool is_starter(uint64_t cage)
{
	return only_started && starts(lind_client(cage), cage);
}

void follow_starters(void)
{
	static const struct lind_lifecycle lifecycle = {
		.start = start, .fork = fork_client, .exec = exec_client, .exit = exit_client
	};

	if (only_started)
		lind_grate_lifecycle(&lifecycle);
}
