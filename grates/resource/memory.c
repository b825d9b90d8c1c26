/*
 * Memory: the mappings, as getrusage(2) of a client reports after each call that changes them. The
 * amount that a call may add is reserved before it is made; calls of one address space are made one
 * after the other, so that the difference is theirs.
 *
 * System V segments count from shmget to IPC_RMID, beside their mappings. For semaphores and
 * messages the kernel charges whoever made them, and when that ends its parent: getrusage(2) has it
 * with what is mapped.
 */
#include <errno.h>
#include <lind/grate.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include "bytes.h"
#include "limits.h"
#include "memory.h"

#define PAGE 4096ull
#define MOST (1ull << 32)

LIND_HANDLE_OF(memory, alters, mremap);
LIND_HANDLE_OF(memory, alters, brk);
LIND_HANDLE_OF(memory, alters, shmat);
LIND_HANDLE_OF(memory, alters, shmget);
LIND_HANDLE_OF(memory, observes, shmctl);
LIND_HANDLE_OF(memory, alters, semget);
LIND_HANDLE_OF(memory, alters, semop);
LIND_HANDLE_OF(memory, alters, semtimedop);
LIND_HANDLE_OF(memory, alters, msgsnd);

void memory_begins(void)
{
	lind_grate_part(memory);
}

/* As the kernel lays it out. */
struct usage {
	int64_t user[2], system[2], maxrss, other[13];
};

static int usage_of(uint64_t cage, struct usage *u)
{
	struct lind_arg none = { 0, cage };

	return (int)lind_call(
	    SYS_getrusage, cage, (struct lind_arg){ RUSAGE_SELF, cage }, lind_mine(u), none, none, none, none);
}

uint64_t cpu_of(uint64_t cage)
{
	struct usage u = { 0 };

	if (usage_of(cage, &u) < 0)
		return 0;
	return (uint64_t)((u.user[0] + u.system[0]) * 1000000000ll + (u.user[1] + u.system[1]) * 1000ll);
}

struct space *space_new(void)
{
	struct space *s = calloc(1, sizeof *s);

	if (!s)
		lind_die("out of memory");
	s->cages = 1;
	pthread_mutex_init(&s->lock, NULL);
	return s;
}

struct space *space_share(struct space *space)
{
	__atomic_fetch_add(&space->cages, 1, __ATOMIC_ACQ_REL);
	return space;
}

void space_drop(struct space *space)
{
	if (__atomic_sub_fetch(&space->cages, 1, __ATOMIC_ACQ_REL) == 0)
		free(space);
}

/* Settles the count: the use now, of which `reserved` bytes more are counted already. The lock
 * is held. */
static void settle(struct client *c, uint64_t reserved)
{
	uint64_t counted = c->space->used + reserved;
	struct usage u = { 0 };

	if (usage_of(c->cage, &u) < 0)
		u.maxrss = (int64_t)(counted >> 10);
	c->space->used = (uint64_t)u.maxrss << 10;
	/* Modulo 2^64: less is a sum with what is over. */
	drop(TREE, c, MEMORY, counted - c->space->used);
	note_peak(MEMORY);
	__atomic_store_n(&c->used[MEMORY], c->space->used, __ATOMIC_RELAXED);
}

void memory_look(struct client *c)
{
	pthread_mutex_lock(&c->space->lock);
	settle(c, 0);
	pthread_mutex_unlock(&c->space->lock);
}

void memory_copied(struct client *child, uint64_t bytes)
{
	child->space->used = child->space->cages > 1 ? child->space->used : bytes;
	child->used[MEMORY] = bytes;
}

void memory_leave(struct client *c)
{
	if (__atomic_load_n(&c->space->cages, __ATOMIC_ACQUIRE) == 1)
		drop(TREE, c, MEMORY, c->space->used);
	space_drop(c->space);
}

/* Makes a call that maps up to `more` bytes. */
static int64_t change(struct client *c, const struct lind_call *call, uint64_t more)
{
	enum scope scope = TREE;
	uint64_t got;
	int64_t r;

	more = more > MOST ? MOST : (more + PAGE - 1) & ~(PAGE - 1);
	c->look_from = 0;
	pthread_mutex_lock(&c->space->lock);
	settle(c, 0);
	got = more ? grab(TREE, c, MEMORY, more) : 0;
	if (got == more && limits[EACH][MEMORY] != UNLIMITED && more && c->space->used + more > limits[EACH][MEMORY])
		scope = EACH;
	if (got < more || scope == EACH) {
		drop(TREE, c, MEMORY, got);
		pthread_mutex_unlock(&c->space->lock);
		return hit(c, scope, MEMORY, more, lind_call_name(call->nr));
	}
	r = lind_forward(call);
	settle(c, more);
	pthread_mutex_unlock(&c->space->lock);
	return r;
}

static int64_t map(const struct lind_call *call)
{
	return change(lind_client(call->target), call, call->args[1].value);
}

static int64_t on_mmap(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);

	return c ? map_file(c, call, map) : lind_forward(call);
}

static int64_t on_munmap(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);

	return c ? change(c, call, 0) : lind_forward(call);
}

LIND_HANDLE_OF(memory, alters, mmap, on_mmap);
LIND_HANDLE_OF(memory, observes, munmap, on_munmap);
LIND_HANDLE_OF(memory, observes, shmdt, on_munmap);

static int64_t on_mremap(
    const struct lind_call *call, uint64_t addr, size_t old, size_t new, int flags, uint64_t new_addr)
{
	struct client *c = lind_client(call->target);

	(void)addr, (void)flags, (void)new_addr;
	/* Old length 0 makes a second mapping. */
	return c ? change(c, call, new > old ? new - old : 0) : lind_forward(call);
}

/* Makes a call for which the kernel may keep up to `more` bytes, and which may wait: the lock is
 * not held meanwhile. */
static int64_t keep(const struct lind_call *call, uint64_t more)
{
	struct client *c = lind_client(call->target);
	enum scope scope = TREE;
	uint64_t got;
	int64_t r;

	if (!c)
		return lind_below(memory, call);
	c->look_from = 0;
	pthread_mutex_lock(&c->space->lock);
	settle(c, 0);
	got = grab(TREE, c, MEMORY, more);
	if (got == more && limits[EACH][MEMORY] != UNLIMITED && c->space->used + more > limits[EACH][MEMORY])
		scope = EACH;
	pthread_mutex_unlock(&c->space->lock);
	if (got < more || scope == EACH) {
		drop(TREE, c, MEMORY, got);
		return hit(c, scope, MEMORY, more, lind_call_name(call->nr));
	}
	r = lind_below(memory, call);
	pthread_mutex_lock(&c->space->lock);
	settle(c, more);
	pthread_mutex_unlock(&c->space->lock);
	return r;
}

/* The memory of an object of the kernel, besides its contents. */
#define KEPT 512ull

static int64_t on_semget(const struct lind_call *call, int key, int count, int flags)
{
	(void)key, (void)flags;
	return keep(call, KEPT + 16 * (uint64_t)(uint32_t)count);
}

/* SEM_UNDO: at most one note for each operation. */
static int64_t on_semop(const struct lind_call *call, int id, struct lind_arg ops, size_t count)
{
	(void)id, (void)ops;
	return keep(call, 32 * (count & 0xffff));
}

static int64_t on_semtimedop(
    const struct lind_call *call, int id, struct lind_arg ops, size_t count, const struct timespec *timeout)
{
	(void)timeout;
	return on_semop(call, id, ops, count);
}

static int64_t on_msgsnd(const struct lind_call *call, int id, struct lind_arg message, size_t size, int flags)
{
	(void)id, (void)message, (void)flags;
	return keep(call, KEPT + (size & 0xffff));
}

/* The break can only be asked for by a call of its own; another thread may move it meanwhile,
 * upwards to our advantage, and downwards only by a call that waits for the lock. */
static int64_t on_brk(const struct lind_call *call, uint64_t to)
{
	struct client *c = lind_client(call->target);
	int64_t at, r;
	uint64_t more, got;
	enum scope scope = TREE;

	if (!c)
		return lind_forward(call);
	c->look_from = 0;
	pthread_mutex_lock(&c->space->lock);
	settle(c, 0);
	at = lind_call_plain(SYS_brk, call->target, 0, 0, 0, 0);
	more = at > 0 && to > (uint64_t)at ? ((to - (uint64_t)at) + 2 * PAGE - 1) & ~(PAGE - 1) : 0;
	more = more > MOST ? MOST : more;
	got = more ? grab(TREE, c, MEMORY, more) : 0;
	if (limits[EACH][MEMORY] != UNLIMITED && more && c->space->used + more > limits[EACH][MEMORY])
		scope = EACH;
	if (got < more || scope == EACH) {
		drop(TREE, c, MEMORY, got);
		pthread_mutex_unlock(&c->space->lock);
		/* brk(2) has no errors: it says where the break is. */
		(void)hit(c, scope, MEMORY, more, "brk");
		return at;
	}
	r = lind_forward(call);
	settle(c, more);
	pthread_mutex_unlock(&c->space->lock);
	return r;
}

/* Segments by id: the low bits of an id are its place. */
#define SEGMENTS 4096
static struct {
	pthread_mutex_t lock;
	struct {
		int32_t id;
		uint64_t size;
	} of[SEGMENTS];
} segments = { .lock = PTHREAD_MUTEX_INITIALIZER };

static uint64_t segment_size(const struct lind_call *call, int id)
{
	struct shmid_ds ds = { 0 };

	if (lind_forward_shmctl(call, id, IPC_STAT, lind_mine(&ds)) < 0)
		return 0;
	return (ds.shm_segsz + PAGE - 1) & ~(PAGE - 1);
}

static int64_t on_shmat(const struct lind_call *call, int id, uint64_t addr, int flags)
{
	struct client *c = lind_client(call->target);

	(void)addr, (void)flags;
	return c ? change(c, call, segment_size(call, id)) : lind_forward(call);
}

/* Whether the segment is new, and so counts. */
static bool remember(int32_t id, uint64_t size)
{
	bool new = false;
	int room = -1;

	pthread_mutex_lock(&segments.lock);
	for (int i = 0; i < SEGMENTS && !new; i++) {
		if (segments.of[i].size && segments.of[i].id == id)
			goto known;
		if (!segments.of[i].size && room < 0)
			room = i;
	}
	new = true;
	/* Beyond the table's room they count for good. */
	if (room >= 0)
		segments.of[room].id = id, segments.of[room].size = size;
known:
	pthread_mutex_unlock(&segments.lock);
	return new;
}

static uint64_t forget(int32_t id)
{
	uint64_t size = 0;

	pthread_mutex_lock(&segments.lock);
	for (int i = 0; i < SEGMENTS; i++)
		if (segments.of[i].size && segments.of[i].id == id) {
			size = segments.of[i].size;
			segments.of[i].size = 0;
		}
	pthread_mutex_unlock(&segments.lock);
	return size;
}

static int64_t on_shmget(const struct lind_call *call, int key, size_t wanted, int flags)
{
	struct client *c = lind_client(call->target);
	uint64_t size = ((uint64_t)wanted + PAGE - 1) & ~(PAGE - 1), got;
	int64_t r;

	if (!c || !(flags & IPC_CREAT || key == IPC_PRIVATE))
		return lind_forward(call);
	c->look_from = 0;
	memory_look(c);
	got = grab(TREE, c, MEMORY, size);
	if (got < size) {
		drop(TREE, c, MEMORY, got);
		return hit(c, TREE, MEMORY, size, "shmget");
	}
	r = lind_forward(call);
	if (r < 0 || !remember((int32_t)r, size))
		drop(TREE, c, MEMORY, size);
	return r;
}

static int64_t on_shmctl(const struct lind_call *call, int id, int cmd, struct lind_arg buf)
{
	struct client *c = lind_client(call->target);
	int64_t r = lind_forward(call);

	(void)buf;
	if (c && r >= 0 && cmd == IPC_RMID)
		drop(TREE, c, MEMORY, forget(id));
	return r;
}
