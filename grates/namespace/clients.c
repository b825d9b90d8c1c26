/* The state of each client. */
#include <stdlib.h>
#include "calls.h"
#include "choose.h"
#include "clients.h"
#include "fds.h"
#include "hold.h"
#include "kinds.h"
#include "where.h"
#include "words.h"

static struct client *unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Memory of clients goes back to clients only: another cage may still be naming one that ends. */
static struct client *new_client(void)
{
	struct client *client;

	pthread_mutex_lock(&lock);
	if ((client = unused))
		unused = client->next_free;
	pthread_mutex_unlock(&lock);
	if (!client) {
		if (!(client = calloc(1, sizeof *client)))
			lind_die("out of memory for a client");
		pthread_mutex_init(&client->lock, NULL);
		fds_init(client);
		client_add(client);
	}
	return client;
}

static void *start(uint64_t cage)
{
	struct client *client = new_client();

	client->cage = cage;
	fds_route(client, cage);
	return client;
}

static void *fork_client(void *parent, uint64_t parent_cage, uint64_t cage, int spawned)
{
	struct client *from = parent, *client = new_client();

	(void)parent_cage;
	client->cage = cage;
	fds_copy(client, cage, from);
	fds_route(client, cage);
	atomic_store(&client->fds_seen, atomic_load(&from->fds_seen));
	/* A flag may have been set since the words were copied. */
	if (flags_change)
		mark_what_matches(client, atomic_load(&client->fds_seen));
	atomic_store(&client->owns, atomic_load(&from->owns) || atomic_load(&client->fds_end));
	atomic_store(&client->mapped, !spawned && atomic_load(&from->mapped));
	pthread_mutex_lock(&from->lock);
	client->cwd_inside = from->cwd_inside;
	client->cwd = from->cwd ? strdup(from->cwd) : NULL;
	pthread_mutex_unlock(&from->lock);
	return client;
}

/* Descriptors that close now stay marked until their numbers are given again. */
static void exec_client(void *state, uint64_t cage)
{
	struct client *client = state;

	(void)cage;
	atomic_store(&client->mapped, false);
	threads_end(client);
}

static void exit_client(void *state, uint64_t cage, int status)
{
	struct client *client = state;

	(void)cage;
	(void)status;
	pthread_mutex_lock(&client->lock);
	atomic_store(&client->cage, 0);
	pthread_mutex_unlock(&client->lock);
	fds_forget(client);
	atomic_store(&client->fds_seen, 0);
	calls_ended(client);
	atomic_store(&client->owns, false);
	atomic_store(&client->threads, false);
	atomic_store(&client->mapped, false);
	client_cwd(client, false, NULL);
	pthread_mutex_lock(&lock);
	client->next_free = unused;
	unused = client;
	pthread_mutex_unlock(&lock);
}

const struct lind_lifecycle lifecycle = {
	.start = start, .fork = fork_client, .exec = exec_client, .exit = exit_client
};

void client_entered(void *state, uint64_t cage)
{
	char path[PATH_MAX];
	struct lind_arg none = { 0, cage };
	int64_t r = lind_call(
	    SYS_getcwd, cage, lind_mine(path), (struct lind_arg){ sizeof path, cage }, none, none, none, none);

	mark_start_fds(state);
	if (by_path && r > 0 && below_a_prefix(path))
		client_cwd(state, true, path);
}
