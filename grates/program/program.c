/*
 * The program grate: a cage that runs one of the programs gets the grates between `%{` and `%}`
 * before it, for the rest of its life, and so does all that it starts. Calls of others go past
 * them.
 *
 * A program is looked at when it is started: the file that was found is the one that runs. The cage
 * is marked before that, so that the grates inside see all calls of the new program, from its
 * first.
 */
#include <errno.h>
#include <fcntl.h>
#include <lind/compose.h>
#include <lind/paths.h>
#include <lind/grate.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include "../sdk/c/core/program.h"
#include "which.h"

LIND_COMPOSES(1);
/* The calls that a grate inside handles. */
LIND_HANDLE(alters, any, NULL);

struct client {
	/* It is inside for each program that it has begun to run, and for each that one of its threads
	 * is about to: what one of them takes back must not be what another has succeeded with. */
	atomic_uint reasons;
	struct client *next; /* among those without a cage */
};

static struct client *unused;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The thread is starting one of the programs in a child. */
static _Thread_local bool born_inside;

static void *new_client(bool inside)
{
	struct client *client;

	pthread_mutex_lock(&lock);
	if ((client = unused))
		unused = client->next;
	pthread_mutex_unlock(&lock);
	if (!client && !(client = calloc(1, sizeof *client)))
		lind_die("out of memory for a client");
	atomic_store(&client->reasons, inside);
	return client;
}

static void *start(uint64_t cage)
{
	(void)cage;
	return new_client(false);
}

static void *fork_client(void *parent, uint64_t parent_cage, uint64_t cage, int spawned)
{
	struct client *from = parent;
	bool inside = (from && atomic_load(&from->reasons)) || born_inside;

	(void)parent_cage;
	(void)cage;
	(void)spawned;
	born_inside = false;
	return new_client(inside);
}

/* Memory of clients goes back to clients only: another cage may be asking about one that ends. */
static void exit_client(void *state, uint64_t cage, int status)
{
	struct client *client = state;

	(void)cage;
	(void)status;
	pthread_mutex_lock(&lock);
	client->next = unused;
	unused = client;
	pthread_mutex_unlock(&lock);
}

/* The known state of a cage, without waiting; NULL if there is none. */
static inline const struct client *known(uint64_t cage)
{
	void **leaf = __atomic_load_n(&lind_client_leaves_[(uint32_t)cage / LIND_CLIENT_LEAF], __ATOMIC_ACQUIRE);

	return leaf ? __atomic_load_n(&leaf[(uint32_t)cage % LIND_CLIENT_LEAF], __ATOMIC_ACQUIRE) : NULL;
}

static inline bool is_inside(const struct client *client)
{
	return __atomic_load_n((const unsigned *)&client->reasons, __ATOMIC_ACQUIRE);
}

/* The caller counts, too: a program may make calls that act on cages that were started before
 * it. */
static bool enters(const struct lind_call *c)
{
	const struct client *client = lind_client(c->target),
			    *caller = c->caller != c->target ? known(c->caller) : NULL;

	return !client || is_inside(client) || (caller && is_inside(caller));
}

static int64_t on_call(const struct lind_call *c)
{
	return enters(c) ? lind_enter(0, c) : lind_pass(c);
}

static int decide(const struct lind_call *c, unsigned effect, const struct lind_place *place, void *arg)
{
	struct client *client = lind_client(c->target);
	bool *now = arg;

	(void)effect;
	if (client && !*now && is_program(place)) {
		atomic_fetch_add(&client->reasons, 1);
		*now = true;
	}
	return 0;
}

static int64_t on_exec(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	bool now = client && enters(c);
	int64_t r;

	if (now) {
		atomic_fetch_add(&client->reasons, 1);
		r = lind_enter(0, c);
	} else
		r = client ? lind_path_exec(c, NULL, decide, &now) : -ESRCH;
	if (r < 0 && now)
		atomic_fetch_sub(&client->reasons, 1);
	return r;
}

static int decide_birth(const struct lind_call *c, unsigned effect, const struct lind_place *place, void *arg)
{
	(void)c;
	(void)effect;
	(void)arg;
	born_inside = born_inside || is_program(place);
	return 0;
}

static int64_t on_spawn(const struct lind_call *c)
{
	int64_t r;

	if (enters(c))
		return lind_enter(0, c);
	born_inside = false;
	r = lind_path_exec(c, NULL, decide_birth, NULL);
	if (r < 0)
		born_inside = false;
	return r;
}

LIND_FILTER(on_call)
{
	const struct client *calls = known(client);

	/* An unknown cage may be about to be born. */
	return !calls || is_inside(calls) ? LIND_ASK : LIND_PASS;
}

static lind_handle_fn *choose(uint32_t nr)
{
	if (nr == SYS_execve || nr == SYS_execveat)
		return on_exec;
	if (nr == SYS_spawn)
		return on_spawn;
	return lind_handled_inside(0, nr) ? on_call : NULL;
}

/* For --explain. */
static const char *when(uint32_t nr, lind_handle_fn *handle)
{
	(void)nr;
	return handle == on_call ? "if a chosen program runs"
				 : "if a chosen program runs; looks at programs that are started";
}

LIND_OPTION("p", "path", "value");
LIND_OPTION("-", "hash", "value");

int main(int argc, char **argv)
{
	static const struct lind_option options[] = {
		{ 'p', "path", "PATH", "choose this program, and all that it starts; may be repeated", add_path },
		{ 0, "hash", "HEX", "choose any file with this BLAKE3 hash", add_hash },
	};
	static const struct lind_composer composer = {
		.stacks = 1,
		.choose = choose,
		.when = when,
		.lifecycle = { .start = start, .fork = fork_client, .exit = exit_client },
	};

	lind_options(options, sizeof options / sizeof *options,
	    "Shows the calls of some programs to the grates between %{ and %}.", &argc, &argv);
	if (!any_program())
		lind_die("name a program: --path PATH or --hash HEX");
	if (!lind_explains())
		find_programs();
	return lind_compose_run(&composer, argc, argv);
}
