/*
 * Replaying: calls get what the record has. Calls about the cage itself (memory, children,
 * handlers, programs) are made again, and have to come out as they did.
 *
 * Nothing in the record is believed: a result is only a number to the client, and bytes go where
 * the client's own call lets them go (pieces.c).
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include "replay.h"

#define NONE (struct lind_arg){ 0 }

static struct log *log;
static unsigned grates_beside;
static bool writes_again;
static uint64_t stops_before;
static uint32_t first_cage;

bool made_again(uint32_t nr)
{
	switch (nr) {
	case SYS_mmap:
	case SYS_munmap:
	case SYS_mprotect:
	case SYS_brk:
	case SYS_mremap:
	case SYS_madvise:
	case SYS_clone:
	case SYS_execve:
	case SYS_rt_sigaction:
	case SYS_rt_sigprocmask:
	case SYS_sigaltstack:
	case SYS_set_tid_address:
	case SYS_set_robust_list:
	case SYS_exit:
	case SYS_exit_group:
		return true;
	}
	return false;
}

static int64_t steer(uint64_t cage, uint64_t what, const siginfo_t *info, uint64_t value, uint64_t mask)
{
	return lind_call(SYS_steer, cage, (struct lind_arg){ what, 0 }, info ? lind_mine(info) : NONE,
	    (struct lind_arg){ value, 0 }, (struct lind_arg){ mask, 0 }, NONE, NONE);
}

static bool same_texts(const char *one, size_t length, const char *other, size_t other_length)
{
	return length == other_length && !memcmp(one, other, length);
}

/* The texts of a record, and what is behind them. */
static const char *split(const struct record *r, const char **texts, uint32_t *length, size_t *rest)
{
	const char *at = (const char *)(r + 1);

	*texts = NULL;
	*length = 0;
	*rest = 0;
	if (r->bytes < sizeof *length)
		return at;
	memcpy(length, at, sizeof *length);
	if (*length > r->bytes - sizeof *length)
		*length = 0;
	*texts = at + sizeof *length;
	*rest = r->bytes - sizeof *length - *length;
	return *texts + *length;
}

_Noreturn void differs(const struct client *client, const struct lind_call *c, const struct record *r, const char *why)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	char call[1024], result[64], texts[TEXTS_ROOM];
	uint64_t args[6];
	const char *recorded;
	uint32_t length;
	size_t rest;

	pthread_mutex_lock(&once);
	show_last();
	lind_log("here the replay goes another way, in cage %u%s%s:", client->cage, *why ? ": " : "", why);
	if (c) {
		size_t own = texts_of(c, row_of(c->nr), texts, sizeof texts);

		for (int i = 0; i < 6; i++)
			args[i] = c->args[i].value;
		show_call(call, sizeof call, c->nr, args, texts, own);
		lind_log("  the program makes %s", call);
	}
	if (r && r->nr == SYS_signalled)
		lind_log("  the record has the handler of signal %u", (unsigned)(uint8_t)r->args[0]);
	else if (r) {
		split(r, &recorded, &length, &rest);
		show_call(call, sizeof call, r->nr, r->args, recorded, length);
		show_result(result, sizeof result, r);
		lind_log("  the record has %llu: %s = %s", (unsigned long long)r->number, call, result);
	} else
		lind_log("  the record has no more of it");
	living_end(125);
}

/* Stops where the user said. */
_Noreturn static void stop(const struct client *client, const struct lind_call *c, const struct record *r)
{
	static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
	char call[1024], texts[TEXTS_ROOM];
	uint64_t args[6];

	pthread_mutex_lock(&once);
	show_last();
	for (int i = 0; i < 6; i++)
		args[i] = c->args[i].value;
	show_call(call, sizeof call, c->nr, args, texts, texts_of(c, row_of(c->nr), texts, sizeof texts));
	lind_log(
	    "stopped before call %llu: cage %u is about to make %s", (unsigned long long)r->number, client->cage, call);
	fds_show(client->fds);
	living_end(0);
}

/* Ends the replay if the recording ended before the programs. */
static void end_as_recorded(void)
{
	const char *reason;
	const struct ending *ending = read_ending(log, &reason);

	if (!ending || !ending->whole) {
		show_last();
		lind_log("the recording ended here: %.400s", reason);
		living_end(125);
	}
}

/* The record ends before the program: either the recording did, or the program was running when the
 * first one ended, and waits for that here. */
static int64_t no_more(const struct client *client, const struct lind_call *c)
{
	static uint32_t word;

	end_as_recorded();
	if (client->cage == first_cage)
		differs(client, c, NULL, "");
	while (lind_wait(client->cage, &word, 0, NULL) != -EINTR)
		;
	return -EINTR;
}

/* Signals that a fault of the program itself may have: it faults in a replay, too. */
static bool comes_by_itself(int64_t status)
{
	switch (status & 127) {
	case 0:
	case SIGILL:
	case SIGTRAP:
	case SIGABRT:
	case SIGBUS:
	case SIGFPE:
	case SIGSEGV:
		return true;
	}
	return false;
}

static void plan(const struct client *client, const struct record *r)
{
	const uint64_t *a = r->args;
	siginfo_t info;
	uint32_t fields[6];

	memset(&info, 0, sizeof info);
	info.si_signo = (uint8_t)a[0];
	info.si_code = (int)(a[0] >> 32);
	for (int i = 0; i < 6; i++)
		fields[i] = (uint32_t)(a[3 + i / 2] >> 32 * (i % 2));
	memcpy((char *)&info + 12, fields, sizeof fields);
	if (steer(client->cage, STEER_PLAN, &info, a[1], a[2]))
		differs(client, NULL, r, "the record has a signal that there is not");
}

/* Writes down what the replay did: what the program asked for, and what it has in its memory. */
static void write_again(
    struct client *client, const struct lind_call *c, const struct record *r, const char *more, size_t length)
{
	const struct lind_syscall *row = row_of(c->nr);
	const bool writes = writes_memory(row) && !made_again(c->nr) && r->result != -EFAULT;
	struct record copy = *r;
	struct bytes all = { 0 };
	uint32_t size = 0;

	for (int i = 0; i < 6; i++)
		copy.args[i] = c->args[i].value;
	if (r->bytes) {
		bytes_add(&all, &size, sizeof size);
		size = (uint32_t)texts_of(c, row, bytes_room(&all, TEXTS_ROOM), TEXTS_ROOM);
		memcpy(all.data, &size, sizeof size);
		all.used += size;
	}
	if (writes) {
		struct pieces pieces;

		pieces_before(c, row, &pieces);
		pieces_after(c, r->result, &pieces);
		pieces_read(&pieces, &all);
	} else
		bytes_add(&all, more, length);
	copy.bytes = (uint32_t)all.used;
	log_add(client->again, &copy, all.data);
	bytes_free(&all);
}

static void end_by_signal(struct client *client, const struct record *r)
{
	if (client->ending)
		return;
	client->ending = true;
	if (steer(client->cage, STEER_END, NULL, (uint64_t)(r->result & 127), 0))
		differs(client, NULL, r, "the record has a signal that there is not");
}

/* Prepares what the record has before the next call. */
static void follow(struct client *client)
{
	const struct record *r;

	while ((r = read_next(log, client)) && r->nr == SYS_signalled) {
		plan(client, r);
		if (writes_again)
			log_add(client->again, r, NULL);
		read_take(client);
	}
	if (r && r->nr == NR_END && !comes_by_itself(r->result))
		end_by_signal(client, r);
}

static void check(struct client *client, const struct lind_call *c, const struct record *r)
{
	const struct lind_syscall *row = row_of(c->nr);
	char own[TEXTS_ROOM];
	const char *texts;
	uint32_t length;
	size_t rest;

	if (r->nr != c->nr)
		differs(client, c, r, "");
	for (int i = 0; i < (row ? row->count : 6); i++)
		if (r->args[i] != c->args[i].value)
			differs(client, c, r, "");
	split(r, &texts, &length, &rest);
	if (length && !same_texts(own, texts_of(c, row, own, sizeof own), texts, length))
		differs(client, c, r, "");
}

/* A mapping of a file becomes memory with what the file held. */
static int64_t map_again(
    struct client *client, const struct lind_call *c, const struct record *r, const char *held, size_t length)
{
	struct lind_call anonymous = *c;
	int64_t result;

	if (c->args[3].value & MAP_ANONYMOUS)
		return lind_forward(c);
	anonymous.args[0].value = (uint64_t)r->result;
	anonymous.args[2].value = PROT_READ | PROT_WRITE;
	anonymous.args[3].value =
	    MAP_PRIVATE | MAP_ANONYMOUS | (c->args[3].value & MAP_FIXED ? MAP_FIXED : MAP_FIXED_NOREPLACE);
	anonymous.args[4].value = (uint64_t)-1;
	anonymous.args[5].value = 0;
	result = lind_forward(&anonymous);
	if (result != r->result)
		return result;
	if (length > c->args[1].value ||
	    (length && lind_write((struct lind_arg){ (uint64_t)result, c->target }, held, length)))
		differs(client, c, r, "the record has more of a file than was mapped");
	if (c->args[2].value != (PROT_READ | PROT_WRITE))
		lind_call(SYS_mprotect, c->target, (struct lind_arg){ (uint64_t)result, c->target }, c->args[1],
		    c->args[2], NONE, NONE, NONE);
	return result;
}

static int64_t birth_again(struct client *client, const struct lind_call *c, const struct record *r)
{
	const uint64_t thread = 0x10000; /* CLONE_THREAD */
	int64_t result;

	/* A recording ends before it. */
	if (c->args[0].value & thread)
		differs(client, c, r, "no record has threads");
	result = steer(client->cage, STEER_CHILD, NULL, (uint64_t)r->result, 0);
	if (result)
		differs(client, c, r, "no process can have the id of the record");
	return lind_forward(c);
}

/* Makes a call again, and says what it gave. */
static int64_t again(
    struct client *client, const struct lind_call *c, const struct record *r, const char *more, size_t length)
{
	if (c->nr == SYS_exit || c->nr == SYS_exit_group)
		return lind_forward(c);
	/* Most failures have had no effect, and their reasons may be gone. */
	if (r->result < 0 && r->result >= -4095 && c->nr != SYS_rt_sigaction)
		return r->result;
	switch (c->nr) {
	case SYS_mmap:
		return map_again(client, c, r, more, length);
	case SYS_clone:
		return birth_again(client, c, r);
	case SYS_execve:
		return program_again(c, more, length);
	case SYS_madvise:
		/* Of a mapped file it would have brought back what the file holds. */
		return lind_forward(c);
	}
	return lind_forward(c);
}

/* The child that a call has waited for, if it has ended. */
static int64_t reaped(const struct lind_call *c, const struct record *r)
{
	int32_t word[4];

	if (c->nr == SYS_wait4 && r->result > 0) {
		if (!c->args[1].value)
			return r->result;
		if (!lind_read(c->args[1], word, sizeof *word) && (WIFEXITED(*word) || WIFSIGNALED(*word)))
			return r->result;
	}
	if (c->nr == SYS_waitid && !r->result && c->args[2].value && !(c->args[3].value & WNOWAIT) &&
	    !lind_read(c->args[2], word, sizeof word) && word[2] >= CLD_EXITED && word[2] <= CLD_DUMPED)
		return word[3];
	return 0;
}

/* Answers a call from the record. */
static void answer(
    struct client *client, const struct lind_call *c, const struct record *r, const char *more, size_t length)
{
	const struct lind_syscall *row = row_of(c->nr);
	struct pieces pieces;
	int64_t child;

	if (writes_memory(row) && r->result != -EFAULT) {
		pieces_before(c, row, &pieces);
		pieces_after(c, r->result, &pieces);
		if (!pieces_write(&pieces, more, length))
			differs(client, c, r, "the record has other bytes than this call writes");
	}
	if ((child = reaped(c, r)))
		lind_call(SYS_wait4, c->target, (struct lind_arg){ (uint64_t)child, c->target }, NONE, NONE, NONE, NONE,
		    NONE);
	output_again(c, r);
	if (r->flags & WAS_INTERRUPTED)
		steer(client->cage, STEER_INTERRUPT, NULL, 0, 0);
}

/* execveat is recorded as the execve that it stands for. */
static struct lind_call plain(const struct lind_call *c)
{
	struct lind_call plain = *c;

	if (c->nr != SYS_execveat)
		return plain;
	plain.nr = SYS_execve;
	for (int i = 0; i < 3; i++)
		plain.args[i] = c->args[i + 1];
	return plain;
}

int64_t on_again(const struct lind_call *given)
{
	struct client *client = lind_client(given->target);
	struct lind_call changed;
	const struct lind_call *c = given;
	const struct record *r;
	const char *texts, *more;
	uint32_t texts_length;
	size_t length;
	int64_t result;

	if (client->beside)
		return lind_pass(given);
	if (given->nr == SYS_execveat) {
		changed = plain(given);
		c = &changed;
	}
	watch_progress();
	if (!(r = read_next(log, client)))
		return no_more(client, c);
	/* A program with a fault makes no call: the signal was sent, as abort(3) does. */
	if (r->nr == NR_END && r->result & 127) {
		end_by_signal(client, r);
		return -EINTR;
	}
	if (r->number >= stops_before)
		stop(client, c, r);
	check(client, c, r);
	more = split(r, &texts, &texts_length, &length);
	result = r->result;
	show_note(client, r);
	if (writes_again && (c->nr == SYS_exit || c->nr == SYS_exit_group))
		write_again(client, c, r, more, length);
	if (made_again(c->nr)) {
		int64_t done = again(client, c, r, more, length);

		if (c->nr == SYS_exit || c->nr == SYS_exit_group) {
			read_take(client);
			return done;
		}
		if (done != result)
			differs(client, c, r, "it came out otherwise");
	} else
		answer(client, c, r, more, length);
	if (writes_again)
		write_again(client, c, r, more, length);
	fds_after(client->fds, c, result);
	read_take(client);
	follow(client);
	return result;
}

/* A grate of the replay's line starts the next, or the program. */
int64_t on_again_spawn(const struct lind_call *c)
{
	struct client *client = lind_client(c->target);

	if (!client->beside)
		differs(client, c, read_next(log, client), "");
	steer(client->cage, STEER_CHILD, NULL, first_cage, 0);
	return lind_forward(c);
}

static struct client *new_client(uint64_t cage, bool beside)
{
	struct client *client = calloc(1, sizeof *client);

	if (!client)
		lind_die("out of memory");
	client->cage = (uint32_t)cage;
	client->beside = beside;
	client->next = read_first(log, client->cage);
	if (!beside)
		living_add(client->cage);
	if (writes_again && !beside) {
		if (!(client->again = calloc(1, sizeof *client)))
			lind_die("out of memory");
		client->again->cage = client->cage;
	}
	return client;
}

static void *started(uint64_t cage)
{
	struct client *client = new_client(cage, grates_beside > 0);

	client->fds = fds_new();
	return client;
}

static void *forked(void *of, uint64_t parent_cage, uint64_t cage, int spawned)
{
	const struct client *parent = of;
	/* The last grate's child is the program. */
	bool beside = parent->beside && (!spawned || cage != first_cage);
	struct client *client = new_client(cage, beside);

	(void)parent_cage;
	client->fds = fds_copy(parent->fds);
	/* It may end, or have a signal, before its first call. */
	if (!beside)
		follow(client);
	return client;
}

static void execed(void *of, uint64_t cage)
{
	(void)cage;
	fds_exec(((struct client *)of)->fds);
}

static void exited(void *of, uint64_t cage, int status)
{
	struct client *client = of;
	const struct record *r = NULL;

	(void)cage;
	living_remove(client->cage);
	if (!client->beside)
		r = read_next(log, client);
	/* The handler of a fault, which ends a recording, ends a program in its replay. */
	if (!client->beside && !r && WIFSIGNALED(status) && comes_by_itself(status))
		end_as_recorded();
	if (r && (r->nr != NR_END || r->result != status)) {
		char why[64];

		snprintf(why, sizeof why, "it has ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
		    WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		differs(client, NULL, r, why);
	}
	if (client->again) {
		struct record end = { .nr = NR_END, .number = r ? r->number : 0, .result = status };

		log_add(client->again, &end, NULL);
		log_close(client->again);
		free(client->again->data);
		free(client->again);
	}
	fds_free(client->fds);
	free(client->data);
	free(client);
}

static void ended(int status)
{
	const char *reason;
	const struct ending *ending = read_ending(log, &reason);

	(void)status;
	living_ended();
	if (writes_again) {
		log_numbered(ending ? ending->calls : 0);
		log_end(true, "");
	}
}

const struct lind_lifecycle *again_lifecycle(void)
{
	static const struct lind_lifecycle lifecycle = {
		.start = started, .fork = forked, .exec = execed, .exit = exited, .end = ended
	};

	return &lifecycle;
}

void again_begin(struct log *of, unsigned beside, uint64_t until, bool writes)
{
	const char *reason;
	int64_t r;

	log = of;
	grates_beside = beside;
	stops_before = until;
	if ((writes_again = writes))
		read_copy_starts(log);
	first_cage = read_start(log);
	watch_begin(read_ending(log, &reason));
	/* With a grate in between, on_again_spawn says it. */
	if (!beside && (r = steer(lind_self(), STEER_CHILD, NULL, first_cage, 0)))
		lind_die("the program cannot have the id of the record, %u: %s; start this by `lind-boot replay`",
		    first_cage, strerror((int)-r));
}
