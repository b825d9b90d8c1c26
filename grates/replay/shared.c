/*
 * Threads, and memory that others change between two calls: a recording cannot hold them. Such a
 * program's recording ends with the reason, since its replay could differ without anybody's notice.
 */
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include "replay.h"

#define RANGES 128
#define FILES  64

/* The shared mappings of one client. */
struct shared {
	struct range {
		uint64_t at, length;
		bool written;  /* whether the program can write there */
	} ranges[RANGES];
	unsigned count;
};

/* Files of shared mappings that can be written, and whose they are. */
static struct file {
	uint64_t device, inode;
	uint32_t cage;
} files[FILES];
static unsigned file_count;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct shared *shared_new(void)
{
	struct shared *shared = calloc(1, sizeof *shared);

	if (!shared)
		lind_die("out of memory");
	return shared;
}

struct shared *shared_copy(const struct shared *shared)
{
	struct shared *copy = shared_new();

	*copy = *shared;
	return copy;
}

void shared_free(struct shared *shared)
{
	free(shared);
}

static bool identity(const struct lind_call *c, int argument, uint64_t *device, uint64_t *inode)
{
	struct {
		uint64_t device, inode, rest[16];
	} stat = { 0 };

	if (lind_call(SYS_fstat, c->target, c->args[argument], lind_mine(&stat), (struct lind_arg){ 0 },
		(struct lind_arg){ 0 }, (struct lind_arg){ 0 }, (struct lind_arg){ 0 }))
		return false;
	*device = stat.device;
	*inode = stat.inode;
	return true;
}

/* Which argument is the descriptor of a file that the call writes to, or -1. */
static int written(uint32_t nr)
{
	switch (nr) {
	case SYS_write:
	case SYS_pwrite64:
	case SYS_writev:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_ftruncate:
	case SYS_fallocate:
	case SYS_sendfile:
		return 0;
	case SYS_copy_file_range:
	case SYS_splice:
		return 2;
	}
	return -1;
}

static bool is_mapped(uint64_t device, uint64_t inode)
{
	bool found = false;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < file_count; i++)
		found |= files[i].device == device && files[i].inode == inode;
	pthread_mutex_unlock(&lock);
	return found;
}

static bool can_write(const struct shared *shared)
{
	for (unsigned i = 0; i < shared->count; i++)
		if (shared->ranges[i].written)
			return true;
	return false;
}

static const char *birth(const struct client *client, uint64_t flags)
{
	const uint64_t vm = 0x100, vfork = 0x4000, parent = 0x8000, thread = 0x10000;

	if (flags & thread)
		return "starts a thread: records hold programs with one thread each";
	if (flags & vm && !(flags & vfork))
		return "starts a process that shares its memory";
	if (flags & parent)
		return "starts a process that is a child of its parent";
	if (!(flags & vm) && can_write(client->shared))
		return "starts a process with which it shares memory (a mapping with MAP_SHARED)";
	return NULL;
}

const char *shared_before(const struct client *client, const struct lind_call *c)
{
	uint64_t device, inode;
	int argument;

	switch (c->nr) {
	case SYS_clone:
		return birth(client, c->args[0].value);
	case SYS_shmat:
		return "attaches memory that it shares with others (shmat)";
	}
	if (__atomic_load_n(&file_count, __ATOMIC_RELAXED) && (argument = written(c->nr)) >= 0 &&
	    identity(c, argument, &device, &inode) && is_mapped(device, inode))
		return "writes to a file that is mapped with MAP_SHARED, so that memory changes without a call";
	return NULL;
}

static const char *add_file(const struct client *client, const struct lind_call *c)
{
	uint64_t device, inode;
	const char *why = NULL;
	unsigned i;

	if (!identity(c, 4, &device, &inode))
		return NULL;
	pthread_mutex_lock(&lock);
	for (i = 0; i < file_count && (files[i].device != device || files[i].inode != inode); i++)
		;
	if (i < file_count && files[i].cage != client->cage)
		why = "maps a file with MAP_SHARED that another program has mapped";
	else if (i == FILES)
		why = "is the last of too many programs that map files with MAP_SHARED";
	else if (i == file_count) {
		files[i] = (struct file){ device, inode, client->cage };
		__atomic_store_n(&file_count, file_count + 1, __ATOMIC_RELAXED);
	}
	pthread_mutex_unlock(&lock);
	return why;
}

static bool overlaps(const struct range *range, uint64_t at, uint64_t length)
{
	return range->at < at + length && at < range->at + range->length;
}

/* Of a range with a hole the whole is kept. */
static void remove_range(struct shared *shared, uint64_t at, uint64_t length)
{
	for (unsigned i = 0; i < shared->count; i++) {
		struct range *range = &shared->ranges[i];
		const uint64_t end = range->at + range->length;

		if (!overlaps(range, at, length))
			continue;
		if (range->at >= at && end <= at + length)
			shared->ranges[i--] = shared->ranges[--shared->count];
		else if (range->at >= at)
			*range = (struct range){ at + length, end - at - length, range->written };
		else if (end <= at + length)
			range->length = at - range->at;
	}
}

static const char *add_range(struct shared *shared, uint64_t at, uint64_t length, bool written)
{
	if (shared->count == RANGES)
		return "has too many mappings with MAP_SHARED";
	shared->ranges[shared->count++] = (struct range){ at, length, written };
	return NULL;
}

/* A program cannot write through a mapping without PROT_WRITE: what it sees there is the file as it
 * was, as in a private mapping. */
static const char *mapped(struct client *client, const struct lind_call *c, uint64_t at, uint64_t length)
{
	const uint64_t kind = c->args[3].value & 15;
	const bool written = c->args[2].value & PROT_WRITE;
	const char *why;

	remove_range(client->shared, at, length);
	if (kind != MAP_SHARED && kind != 3 /* MAP_SHARED_VALIDATE */)
		return NULL;
	if ((why = add_range(client->shared, at, length, written)))
		return why;
	return !written || c->args[3].value & MAP_ANONYMOUS ? NULL : add_file(client, c);
}

static const char *moved(struct shared *shared, uint64_t from, uint64_t length, uint64_t to, uint64_t new_length)
{
	bool found = false, written = false;

	for (unsigned i = 0; i < shared->count; i++)
		if (overlaps(&shared->ranges[i], from, length ? length : 1)) {
			found = true;
			written |= shared->ranges[i].written;
		}
	/* With the length 0 the old place keeps it, too. */
	remove_range(shared, from, length);
	remove_range(shared, to, new_length);
	return found ? add_range(shared, to, new_length, written) : NULL;
}

/* Memory that was mapped to be read alone is written then. */
static bool opens_to_writes(const struct shared *shared, uint64_t at, uint64_t length, uint64_t access)
{
	for (unsigned i = 0; access & PROT_WRITE && i < shared->count; i++)
		if (!shared->ranges[i].written && overlaps(&shared->ranges[i], at, length))
			return true;
	return false;
}

static uint64_t pages(uint64_t length)
{
	return (length + 4095) & ~4095ull;
}

const char *shared_after(struct client *client, const struct lind_call *c, int64_t result)
{
	struct shared *shared = client->shared;
	const uint64_t at = c->args[0].value, length = pages(c->args[1].value);

	if (result < 0)
		return NULL;
	switch (c->nr) {
	case SYS_munmap:
		remove_range(shared, at, length);
		break;
	case SYS_mmap:
		return mapped(client, c, (uint64_t)result, length);
	case SYS_mremap:
		return moved(shared, at, length, (uint64_t)result, pages(c->args[2].value));
	case SYS_mprotect:
		if (opens_to_writes(shared, at, length, c->args[2].value))
			return "makes memory that it shares writable by mprotect (a mapping with MAP_SHARED)";
	}
	return NULL;
}
