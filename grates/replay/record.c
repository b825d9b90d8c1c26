/* Recording: a call goes on, and then it is written down with what it gave. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include "replay.h"

extern char **environ;

#define NONE    (struct lind_arg){ 0 }
#define SCRATCH (1u << 20) /* bytes that a thread keeps */

static char **words;
static bool is_started;

/* All clients, for the end. */
static struct all {
	struct client *client;
	struct all *next;
} *all;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* The calls that have texts, and those that write memory. */
static bool with_texts[LIND_NUMBERS], with_pieces[LIND_NUMBERS];

static void close_all(void)
{
	pthread_mutex_lock(&lock);
	for (struct all *one = all; one; one = one->next)
		log_close(one->client);
	pthread_mutex_unlock(&lock);
}

/* The recording ends before the programs. They cannot go on without it. */
_Noreturn static void stop(const struct client *client, const char *why)
{
	char reason[512];

	snprintf(reason, sizeof reason, "the program in cage %u %s", client->cage, why);
	close_all();
	log_end(false, reason);
	lind_log("%s; the recording ends here, and so do the programs", reason);
	living_end(125);
}

static void add(struct client *client, const struct lind_call *c, struct record *r, const struct bytes *more)
{
	r->nr = c->nr;
	r->bytes = (uint32_t)more->used;
	r->number = log_number();
	for (int i = 0; i < 6; i++)
		r->args[i] = c->args[i].value;
	log_add(client, r, more->data);
}

/* The texts of a call behind their length. */
static void add_texts(const struct lind_call *c, const struct lind_syscall *row, struct bytes *more)
{
	uint32_t length = 0;
	size_t before = more->used;

	bytes_add(more, &length, sizeof length);
	if (with_texts[c->nr]) {
		length = (uint32_t)texts_of(c, row, bytes_room(more, TEXTS_ROOM), TEXTS_ROOM);
		more->used += length;
		memcpy(more->data + before, &length, sizeof length);
	}
}

/* The contents of a mapped file, since a replay has no file. False if they are too many. */
static bool add_mapped(const struct lind_call *c, struct bytes *more)
{
	const uint64_t length = c->args[1].value;
	uint64_t done = 0;

	while (done < length) {
		const size_t step = length - done < 1u << 20 ? (size_t)(length - done) : 1u << 20;
		int64_t n = lind_call(SYS_pread64, c->target, c->args[4], lind_mine(bytes_room(more, step)),
		    (struct lind_arg){ step, 0 }, (struct lind_arg){ c->args[5].value + done, 0 }, NONE, NONE);

		if (n <= 0)
			return true;
		more->used += (size_t)n;
		done += (uint64_t)n;
		if (done > RECORD_MOST / 2)
			return false;
	}
	return true;
}

/* The number of processors is one: programs that start a thread for each start none. */
static void one_processor(const struct lind_call *c, int64_t result)
{
	unsigned char mask[128] = "";
	size_t size = (size_t)result < sizeof mask ? (size_t)result : sizeof mask, i;

	if (lind_read(c->args[2], mask, size))
		return;
	for (i = 0; i < size && !mask[i]; i++)
		;
	if (i < size) {
		mask[i] &= (unsigned char)-mask[i];
		memset(mask + i + 1, 0, size - i - 1);
		lind_write(c->args[2], mask, size);
	}
}

/* Which standard stream a call prints to: 1, 2, or 0. */
static int printed_to(const struct client *client, const struct lind_call *c)
{
	int fd = -1;

	switch (c->nr) {
	case SYS_write:
	case SYS_writev:
	case SYS_pwrite64:
	case SYS_pwritev:
	case SYS_pwritev2:
	case SYS_sendto:
		fd = fds_standard(client->fds, c->args[0].value);
	}
	return fd > 0 ? fd : 0;
}

/* Copies within the kernel, whose bytes nobody sees: to a standard stream programs make them
 * themselves then. */
static bool copies_out(const struct client *client, const struct lind_call *c)
{
	switch (c->nr) {
	case SYS_sendfile:
	case SYS_vmsplice:
		return fds_standard(client->fds, c->args[0].value) > 0;
	case SYS_tee:
		return fds_standard(client->fds, c->args[1].value) > 0;
	case SYS_splice:
	case SYS_copy_file_range:
		return fds_standard(client->fds, c->args[2].value) > 0;
	}
	return false;
}

static int64_t pass(struct client *client, const struct lind_call *c, struct record *r)
{
	int which = printed_to(client, c);

	if (copies_out(client, c))
		return -EINVAL;
	if (!which)
		return lind_forward(c);
	r->flags |= which == 1 ? ON_STDOUT : ON_STDERR;
	return output_record(c, which, &r->turn);
}

static bool was_interrupted(const struct lind_call *c)
{
	return lind_call(SYS_steer, c->target, (struct lind_arg){ STEER_ASK, 0 }, NONE, NONE, NONE, NONE, NONE) == 1;
}

/* A call with texts, or that writes memory, or of which more has to be known. */
static int64_t with_more(struct client *client, const struct lind_call *c, struct record *r)
{
	const struct lind_syscall *row = row_of(c->nr);
	const bool writes = with_pieces[c->nr] && !made_again(c->nr);
	struct pieces pieces;
	/* Kept for the next call; nothing else is recorded on this thread meanwhile. */
	static _Thread_local struct bytes more;

	more.used = 0;
	if (writes)
		pieces_before(c, row, &pieces);
	add_texts(c, row, &more);
	r->result = pass(client, c, r);
	if (c->nr == SYS_sched_getaffinity && r->result > 0)
		one_processor(c, r->result);
	if (writes && r->result != -EFAULT) {
		pieces_after(c, r->result, &pieces);
		if (pieces.cut)
			stop(client, "gets more by one call than a record can hold");
		pieces_read(&pieces, &more);
	}
	if (c->nr == SYS_mmap && r->result > 0 && !(c->args[3].value & MAP_ANONYMOUS) && !add_mapped(c, &more))
		stop(client, "maps more of a file than a record can hold");
	if (r->result == -EINTR && was_interrupted(c))
		r->flags |= WAS_INTERRUPTED;
	add(client, c, r, &more);
	if (more.size > SCRATCH)
		bytes_free(&more);
	return r->result;
}

int64_t on_record(const struct lind_call *c)
{
	static const struct bytes nothing;
	struct client *client = lind_client(c->target);
	struct record r = { 0 };
	const char *why = shared_before(client, c);

	if (why)
		stop(client, why);
	if (c->nr < LIND_NUMBERS &&
	    (with_texts[c->nr] || with_pieces[c->nr] || c->nr == SYS_mmap || printed_to(client, c)))
		r.result = with_more(client, c, &r);
	else {
		r.result = pass(client, c, &r);
		if (r.result == -EINTR && was_interrupted(c))
			r.flags |= WAS_INTERRUPTED;
		add(client, c, &r, &nothing);
	}
	if ((why = shared_after(client, c, r.result)))
		stop(client, why);
	fds_after(client->fds, c, r.result);
	return r.result;
}

/* A call that does not return. */
int64_t on_record_last(const struct lind_call *c)
{
	static const struct bytes nothing;
	struct record r = { 0 };

	add(lind_client(c->target), c, &r, &nothing);
	return lind_forward(c);
}

int64_t on_record_exec(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);
	struct record r = { 0 };
	struct bytes more = { 0 };
	struct lind_call plain = *c;

	if (c->nr == SYS_spawn)
		stop(client, "starts a program by spawn, as grates do");
	if (c->nr == SYS_execveat) {
		if ((int32_t)c->args[0].value != AT_FDCWD || c->args[4].value)
			stop(client, "runs a program that it has open (fexecve, or execveat with a directory)");
		plain.nr = SYS_execve;
		for (int i = 0; i < 3; i++)
			plain.args[i] = c->args[i + 1];
	}
	add_texts(&plain, row_of(SYS_execve), &more);
	{
		struct bytes found = { 0 };

		r.result = program_record(client, &plain, &found);
		bytes_add(&more, found.data, found.used);
		bytes_free(&found);
	}
	add(client, &plain, &r, &more);
	bytes_free(&more);
	return r.result;
}

/* A handler begins. */
int64_t on_signalled(const struct lind_call *c)
{
	static const struct bytes nothing;
	const uint64_t faults = 1ull << SIGILL | 1ull << SIGTRAP | 1ull << SIGBUS | 1ull << SIGFPE | 1ull << SIGSEGV;
	const uint32_t signal = (uint32_t)c->args[0].value, code = (uint32_t)(c->args[0].value >> 32);
	struct client *client = lind_client(c->target);
	struct record r = { 0 };

	if (signal < 64 && faults >> signal & 1 && code > 0 && code < 128)
		stop(client, "handles a fault of its own, which no call causes");
	add(client, c, &r, &nothing);
	return 0;
}

static void add_strings(struct bytes *to, char **list)
{
	/* With a mark, since a word may be empty. */
	for (; *list; list++) {
		bytes_add(to, "=", 1);
		bytes_add(to, *list, strlen(*list) + 1);
	}
	bytes_add(to, "", 1);
}

/* The first program's cage, words and surroundings. */
static void log_start(uint32_t cage)
{
	struct bytes start = { 0 };
	char folder[PATH_ROOM] = "/";

	if (__atomic_exchange_n(&is_started, true, __ATOMIC_RELAXED))
		return;
	if (!getcwd(folder, sizeof folder))
		strcpy(folder, "/");
	add_strings(&start, words);
	add_strings(&start, environ);
	bytes_add(&start, folder, strlen(folder) + 1);
	log_block(BLOCK_START, cage, 0, start.data, start.used);
	bytes_free(&start);
}

static struct client *new_client(uint64_t cage, struct shared *shared)
{
	struct client *client = calloc(1, sizeof *client);
	struct all *one = malloc(sizeof *one);

	if (!client || !one)
		lind_die("out of memory");
	client->cage = (uint32_t)cage;
	client->shared = shared;
	living_add(client->cage);
	pthread_mutex_lock(&lock);
	*one = (struct all){ client, all };
	all = one;
	pthread_mutex_unlock(&lock);
	return client;
}

static void *started(uint64_t cage)
{
	struct client *client = new_client(cage, shared_new());

	client->fds = fds_new();
	log_start(client->cage);
	return client;
}

static void *forked(void *parent, uint64_t parent_cage, uint64_t cage, int spawned)
{
	const struct client *from = parent;
	struct client *client = new_client(cage, shared_copy(from->shared));

	(void)parent_cage;
	(void)spawned;
	client->fds = fds_copy(from->fds);
	return client;
}

static void execed(void *of, uint64_t cage)
{
	struct client *client = of;

	(void)cage;
	fds_exec(client->fds);
	shared_free(client->shared);
	client->shared = shared_new();
}

static void exited(void *of, uint64_t cage, int status)
{
	struct client *client = of;
	struct record r = { .nr = NR_END, .number = log_number(), .result = status };

	(void)cage;
	living_remove(client->cage);
	log_add(client, &r, NULL);
	log_close(client);
	pthread_mutex_lock(&lock);
	for (struct all **at = &all; *at; at = &(*at)->next)
		if ((*at)->client == client) {
			struct all *one = *at;

			*at = one->next;
			free(one);
			break;
		}
	pthread_mutex_unlock(&lock);
	fds_free(client->fds);
	shared_free(client->shared);
	free(client->data);
	free(client);
}

static void ended(int status)
{
	(void)status;
	living_ended();
	close_all();
	log_end(true, "");
}

const struct lind_lifecycle *record_lifecycle(void)
{
	static const struct lind_lifecycle lifecycle = {
		.start = started, .fork = forked, .exec = execed, .exit = exited, .end = ended
	};

	return &lifecycle;
}

void record_begin(int argc, char **argv)
{
	(void)argc;
	words = argv + 1;
	for (uint32_t nr = 0; nr < LIND_NUMBERS; nr++) {
		const struct lind_syscall *row = row_of(nr);

		with_pieces[nr] = writes_memory(row) && !made_again(nr);
		for (int i = 0; row && i < row->count; i++)
			with_texts[nr] |= row->args[i].kind == LIND_PATH || row->args[i].kind == LIND_STR ||
			    (row->args[i].kind == LIND_IN && row->args[i].layout == LIND_LAYOUT_BYTES);
	}
}
