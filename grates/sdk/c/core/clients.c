/*
 * Which cages are clients, and the state that the grate keeps for each.
 *
 * A table indexed by cage id: ids ascend and are not reused, so its leaves fill one after the
 * other. A spawned child may make its first call before spawn has returned to us. While any birth
 * is pending, whoever meets an unknown cage waits until it is known.
 */
#include <errno.h>
#include <lind/raw.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include "sdk.h"

void **lind_client_leaves_[LIND_CLIENT_LEAVES];

static const struct lind_lifecycle none;
const struct lind_lifecycle *lind_hooks_ = &none;
#define hooks lind_hooks_
const struct lind_inner *lind_inner_;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t born = PTHREAD_COND_INITIALIZER;
static unsigned pending;

/* A client for which `start` or `fork` has nothing to keep. */
static char stateless;

/* The grate's own handlers for the calls that the lifecycle watches. */
static lind_handle_fn *own_clone, *own_exec, *own_execat, *own_spawn;

static void *find(uint64_t cage)
{
	void **leaf = lind_client_leaves_[(uint32_t)cage / LIND_CLIENT_LEAF];

	return leaf ? __atomic_load_n(&leaf[(uint32_t)cage % LIND_CLIENT_LEAF], __ATOMIC_ACQUIRE) : NULL;
}

static void keep(uint64_t cage, void *client)
{
	void ***leaf = &lind_client_leaves_[(uint32_t)cage / LIND_CLIENT_LEAF];

	if (!*leaf) {
		void **fresh = calloc(LIND_CLIENT_LEAF, sizeof *fresh);

		if (!fresh)
			lind_die("out of memory for the table of clients");
		__atomic_store_n(leaf, fresh, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&(*leaf)[(uint32_t)cage % LIND_CLIENT_LEAF], client, __ATOMIC_RELEASE);
}

/* The state of a cage once no birth can make it known any more. The lock is held. */
static void *await(uint64_t cage)
{
	void *client;

	while (!(client = find(cage)) && pending)
		pthread_cond_wait(&born, &lock);
	return client;
}

static void *start(uint64_t cage)
{
	void *client;

	if (lind_inner_)
		lind_inner_->start(cage);
	client = hooks->start ? hooks->start(cage) : NULL;
	client = client ? client : &stateless;
	keep(cage, client);
	return client;
}

static void inherit(uint64_t parent, uint64_t child, int spawned)
{
	void *from = find(parent), *client = NULL;

	if (lind_inner_)
		lind_inner_->fork(parent, child, spawned);
	if (hooks->fork)
		client = hooks->fork(from == &stateless ? NULL : from, parent, child, spawned);
	else if (hooks->start)
		client = hooks->start(child);
	keep(child, client ? client : &stateless);
}

void *lind_client_slow_(uint64_t cage)
{
	void *client;

	if (!cage || cage > UINT32_MAX)
		return NULL;
	pthread_mutex_lock(&lock);
	if (!(client = await(cage)))
		client = start(cage);
	pthread_mutex_unlock(&lock);
	return client == &stateless ? NULL : client;
}

void lind_birth_begins(void)
{
	pthread_mutex_lock(&lock);
	pending++;
	pthread_mutex_unlock(&lock);
}

void lind_birth_ends(const uint64_t *parent, int64_t child, int spawned)
{
	pthread_mutex_lock(&lock);
	pending--;
	if (child > 0 && !find((uint64_t)child)) {
		if (parent && !find(*parent))
			start(*parent);
		if (parent)
			inherit(*parent, (uint64_t)child, spawned);
		else
			start((uint64_t)child);
	}
	pthread_cond_broadcast(&born);
	pthread_mutex_unlock(&lock);
}

static int64_t birth(lind_handle_fn *own, const struct lind_call *c, int spawned)
{
	int64_t child;

	/* A client first seen here, as one is behind a clamp. The grate's own handler may ask for it,
	 * and would wait for this very birth. */
	lind_client(c->target);
	if (lind_inner_)
		lind_inner_->freeze(c->target);
	lind_birth_begins();
	child = lind_outcome_(own, c);
	lind_birth_ends(&c->target, child, spawned);
	if (lind_inner_)
		lind_inner_->thaw(c->target);
	return child;
}

/* The child runs only when we have returned, so nothing is pending. */
static int64_t on_clone(const struct lind_call *c)
{
	if (c->args[0].value & CLONE_THREAD)
		return lind_outcome_(own_clone, c);
	return birth(own_clone, c, 0);
}

static int64_t on_spawn(const struct lind_call *c)
{
	return birth(own_spawn, c, 1);
}

static int64_t execed(lind_handle_fn *own, const struct lind_call *c)
{
	int64_t result = lind_outcome_(own, c);

	if (!result && lind_inner_)
		lind_inner_->exec(c->target);
	if (!result && hooks->exec)
		hooks->exec(lind_client(c->target), c->target);
	return result;
}

static int64_t on_exec(const struct lind_call *c)
{
	return execed(own_exec, c);
}

static int64_t on_execat(const struct lind_call *c)
{
	return execed(own_execat, c);
}

static int64_t on_exit_notice(const struct lind_call *c)
{
	uint64_t cage = c->args[0].value;
	void *client;

	pthread_mutex_lock(&lock);
	client = await(cage);
	if (client)
		keep(cage, NULL);
	pthread_mutex_unlock(&lock);
	if (client && lind_inner_)
		lind_inner_->exit(cage);
	if (client && hooks->exit)
		hooks->exit(client == &stateless ? NULL : client, cage, (int)c->args[1].value);
	return 0;
}

static int watches(void)
{
	return lind_inner_ || hooks->start || hooks->fork || hooks->exec || hooks->exit;
}

void lind_watch_(
    struct lind_spawn_handler *table, size_t *count, uint32_t nr, lind_handle_fn *handle, lind_handle_fn **own)
{
	for (size_t i = 0; i < *count; i++)
		if (table[i].nr == nr) {
			*own = table[i].entry == LIND_AS_BEFORE ? NULL : (lind_handle_fn *)(uintptr_t)table[i].entry;
			table[i].entry = (uint32_t)(uintptr_t)handle;
			return;
		}
	/* A handler of all calls is one of this call, too. */
	for (size_t i = 0; i < *count && !lind_outside_any(nr); i++)
		if (table[i].nr == LIND_NR_ANY && table[i].entry != LIND_AS_BEFORE)
			*own = (lind_handle_fn *)(uintptr_t)table[i].entry;
	table[(*count)++] = (struct lind_spawn_handler){ nr, (uint32_t)(uintptr_t)handle };
}

void lind_watch_clients(struct lind_spawn_handler *table, size_t *count)
{
	int64_t r;

	if (!watches())
		return;
	lind_watch_(table, count, SYS_clone, on_clone, &own_clone);
	lind_watch_(table, count, SYS_spawn, on_spawn, &own_spawn);
	lind_watch_(table, count, SYS_execve, on_exec, &own_exec);
	lind_watch_(table, count, SYS_execveat, on_execat, &own_execat);
	if (lind_inner_)
		lind_inner_->watch(table, count);
	if (lind_explains())
		return;
	r = lind_call_plain(SYS_exit_notice, lind_self(), (uintptr_t)on_exit_notice, 0, 0, 0);
	if (r < 0)
		lind_log("cannot watch for the end of clients (error %d): their state stays", (int)-r);
}

void lind_ended(int status)
{
	if (hooks->end)
		hooks->end(status);
}
