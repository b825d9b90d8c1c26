/* Cages and threads, and the names of programs. */
#include <errno.h>
#include <lind/grate.h>
#include <sched.h>
#include <string.h>
#include "files.h"
#include "limits.h"
#include "memfile.h"
#include "memory.h"

LIND_HANDLE(alters, clone);
LIND_HANDLE(observes, exit);

static int64_t thread(struct client *c, const struct lind_call *call)
{
	enum scope scope;
	int64_t r;

	__atomic_fetch_add(&c->births, 1, __ATOMIC_SEQ_CST);
	if (!reserve(c, THREADS, 1, &scope))
		r = hit(c, scope, THREADS, 1, "clone");
	else if ((r = lind_forward(call)) < 0)
		give_back(c, THREADS, 1);
	__atomic_fetch_sub(&c->births, 1, __ATOMIC_SEQ_CST);
	return r;
}

/* Reserves the memory for the child of a fork, as much as its parent has. False if the tree's
 * limit does not allow it. */
static bool reserve_memory(struct client *c, uint64_t *bytes)
{
	uint64_t got;

	*bytes = 0;
	if (!limited(MEMORY))
		return true;
	memory_look(c);
	pthread_mutex_lock(&c->space->lock);
	*bytes = c->space->used;
	pthread_mutex_unlock(&c->space->lock);
	got = grab(TREE, c, MEMORY, *bytes);
	if (got < *bytes)
		drop(TREE, c, MEMORY, got);
	return got == *bytes;
}

static bool reserve_as_many(struct client *c, uint64_t *files)
{
	uint64_t got;

	*files = __atomic_load_n(&c->used[FILES], __ATOMIC_RELAXED);
	got = grab(TREE, c, FILES, *files);
	if (got < *files)
		drop(TREE, c, FILES, got);
	return got == *files;
}

/* A child gets the descriptors of its parent. Descriptors that an exec has closed since count
 * until somebody looks. */
static bool reserve_files(struct client *c, uint64_t *files)
{
	*files = 0;
	if (!limited(FILES) || reserve_as_many(c, files))
		return true;
	files_look();
	return reserve_as_many(c, files);
}

static int64_t cage(struct client *c, const struct lind_call *call, bool copies, bool borrows)
{
	const char *by = lind_call_name(call->nr);
	uint64_t memory = 0, files = 0;
	int64_t r;

	if (__atomic_load_n(&ending, __ATOMIC_SEQ_CST))
		return -EAGAIN;
	if (!grab(TREE, c, CAGES, 1))
		return hit(c, TREE, CAGES, 1, by);
	if (!grab(TREE, c, THREADS, 1))
		r = hit(c, TREE, THREADS, 1, by);
	else {
		if (!reserve_files(c, &files))
			r = hit(c, TREE, FILES, files, by);
		else {
			if (copies && !reserve_memory(c, &memory))
				r = hit(c, TREE, MEMORY, memory, by);
			else {
				birth = (struct birth){ borrows, memory, files };
				if ((r = lind_forward(call)) >= 0)
					return r;
				drop(TREE, c, MEMORY, memory);
			}
			drop(TREE, c, FILES, files);
		}
		drop(TREE, c, THREADS, 1);
	}
	drop(TREE, c, CAGES, 1);
	return r;
}

static int64_t on_clone(const struct lind_call *call, unsigned flags, struct lind_arg stack, struct lind_arg parent_tid,
    struct lind_arg child_tid, struct lind_arg tls)
{
	struct client *c = lind_client(call->target);

	(void)stack, (void)parent_tid, (void)child_tid, (void)tls;
	if (!c)
		return lind_forward(call);
	if (flags & CLONE_THREAD)
		return thread(c, call);
	return cage(c, call, !(flags & CLONE_VM), flags & CLONE_VM);
}

/* Keeps the last part of a path for the name. Of threads that run programs at the same time the
 * last one gives it. */
static void about_to_run(struct client *c, struct lind_arg path)
{
	char name[sizeof c->next_name] = "";

	if (!lind_read_base_name(path, name, sizeof name))
		return;
	pthread_mutex_lock(&c->lock);
	memcpy(c->next_name, name, sizeof name);
	pthread_mutex_unlock(&c->lock);
}

static int64_t on_spawn(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);

	if (!c)
		return lind_forward(call);
	about_to_run(c, call->args[0]);
	/* Only grates start programs like this. */
	memory_files_handed_on();
	return cage(c, call, false, false);
}

static int64_t on_execve(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);

	if (c)
		about_to_run(c, call->args[call->nr == SYS_execveat]);
	return lind_forward(call);
}

/* The last thread's end is the cage's, which gives back what is left. */
static int64_t on_exit(const struct lind_call *call, int status)
{
	struct client *c = lind_client(call->target);
	uint64_t threads;

	(void)status;
	if (!c)
		return lind_forward(call);
	threads = __atomic_load_n(&c->used[THREADS], __ATOMIC_RELAXED);
	while (threads > 1)
		if (__atomic_compare_exchange_n(
			&c->used[THREADS], &threads, threads - 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
			__atomic_fetch_sub(&tree_used[THREADS], 1, __ATOMIC_RELAXED);
			break;
		}
	return lind_forward(call);
}

LIND_HANDLE(alters, spawn, on_spawn);
LIND_HANDLE(observes, execve, on_execve);
LIND_HANDLE(observes, execveat, on_execve);
/* Paths are followed from the client's own root: the kernel is to know that. */
LIND_HANDLE(observes, chroot, lind_forward);
