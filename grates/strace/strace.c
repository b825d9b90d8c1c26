/* The strace grate: options, one handler for every call, and the lines it prints. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include <lind/grate.h>
#include "strace.h"

LIND_HANDLE(observes, any, NULL);
/* Not among any, which leaves them out. */
LIND_HANDLE(observes, exit, NULL);
LIND_HANDLE(observes, exit_group, NULL);
LIND_HANDLE(observes, spawn, NULL);

struct options options = { .string_limit = 32 };

static int output = 2;
static unsigned clients;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int64_t previous;

static int64_t now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void print(const char *line, size_t length)
{
	while (length) {
		ssize_t n = write(output, line, length);

		if (n < 0 && errno != EINTR)
			return;
		if (n > 0) {
			line += n;
			length -= (size_t)n;
		}
	}
}

/* Cage and time of day, as the options ask for. */
static void begin(struct text *line, uint64_t cage)
{
	int64_t wall = options.times ? now(CLOCK_REALTIME) : 0, start = options.relative ? now(CLOCK_MONOTONIC) : 0;
	time_t second = (time_t)(wall / 1000000000);
	struct tm tm;

	if (__atomic_load_n(&clients, __ATOMIC_RELAXED) > 1)
		text_add(line, "[cage %llu] ", (unsigned long long)cage);
	if (options.relative) {
		int64_t before = __atomic_exchange_n(&previous, start, __ATOMIC_RELAXED);

		text_add(line, "%6lld.%06lld ", before ? (long long)((start - before) / 1000000000) : 0LL,
		    before ? (long long)((start - before) / 1000 % 1000000) : 0LL);
	}
	if (options.times > 2)
		text_add(line, "%lld.%06lld ", (long long)second, (long long)(wall / 1000 % 1000000));
	else if (options.times && localtime_r(&second, &tm)) {
		text_add(line, "%02d:%02d:%02d", tm.tm_hour, tm.tm_min, tm.tm_sec);
		if (options.times > 1)
			text_add(line, ".%06lld", (long long)(wall / 1000 % 1000000));
		text_add(line, " ");
	}
}

static void finish(struct text *line)
{
	text_bytes(line, "\n", 1);
	pthread_mutex_lock(&lock);
	print(line->data, line->length);
	pthread_mutex_unlock(&lock);
	text_free(line);
}

/* A number that is not in the table: all that is known are six numbers. */
static void unknown_args(struct text *line, const struct lind_call *c)
{
	text_add(line, "syscall_%#x(", c->nr);
	for (int i = 0; i < 6; i++)
		text_add(line, "%s%#llx", i ? ", " : "", (unsigned long long)c->args[i].value);
	text_add(line, ")");
}

static const struct lind_syscall nothing = { .name = "syscall", .ret = LIND_LONG };

/* name(arguments), and spaces up to where the result stands. */
static void put_call(struct text *line, struct traced *t, size_t from)
{
	if (t->row == &nothing)
		unknown_args(line, t->call);
	else
		print_call(line, t);
	while (line->length - from < 39)
		text_bytes(line, " ", 1);
	text_add(line, " = ");
}

static bool shown(int64_t result)
{
	return !(options.only_good && failed_call(result)) && !(options.only_bad && !failed_call(result));
}

/* A call that does not return is printed first. */
static int64_t on_exit_call(const struct lind_call *c)
{
	struct traced t = { .row = lind_syscall(c->nr), .call = c };
	struct text line;
	size_t from;

	if (options.counts)
		count_call(c->nr, 0, false);
	if (options.counts_only || options.only_bad)
		return lind_forward(c);
	args_before(&t);
	text_init(&line);
	begin(&line, c->target);
	from = line.length;
	put_call(&line, &t, from);
	text_add(&line, "?");
	finish(&line);
	release_call(&t);
	return lind_forward(c);
}

static int64_t counted(const struct lind_call *c)
{
	int64_t start = now(CLOCK_MONOTONIC), result = lind_forward(c);

	count_call(c->nr, now(CLOCK_MONOTONIC) - start, failed_call(result));
	return result;
}

static int64_t printed(const struct lind_call *c)
{
	struct traced t = { .row = lind_syscall(c->nr), .call = c };
	struct text line;
	int64_t start, took;
	size_t from;

	lind_client(c->target);
	t.row = t.row ? t.row : &nothing;
	args_before(&t);
	text_init(&line);
	begin(&line, c->target);
	from = line.length;
	start = now(CLOCK_MONOTONIC);
	t.result = lind_forward(c);
	took = now(CLOCK_MONOTONIC) - start;
	if (options.counts)
		count_call(c->nr, took, failed_call(t.result));
	if (shown(t.result)) {
		args_after(&t);
		put_call(&line, &t, from);
		print_result(&line, &t);
		if (options.durations)
			text_add(&line, " <%lld.%06lld>", (long long)(took / 1000000000),
			    (long long)(took / 1000 % 1000000));
		finish(&line);
	} else
		text_free(&line);
	release_call(&t);
	return t.result;
}

static int64_t on_call(const struct lind_call *c)
{
	return options.counts_only ? counted(c) : printed(c);
}

static void *start(uint64_t cage)
{
	(void)cage;
	__atomic_add_fetch(&clients, 1, __ATOMIC_RELAXED);
	return NULL;
}

static void *forked(void *parent, uint64_t parent_cage, uint64_t cage, int spawned)
{
	(void)parent;
	(void)parent_cage;
	(void)spawned;
	return start(cage);
}

static void ended(void *client, uint64_t cage, int status)
{
	struct text line;

	(void)client;
	if (!options.quiet && !options.counts_only) {
		text_init(&line);
		begin(&line, cage);
		if (WIFSIGNALED(status)) {
			text_add(&line, "+++ killed by ");
			print_signal(&line, WTERMSIG(status));
			text_add(&line, "%s +++", WCOREDUMP(status) ? " (core dumped)" : "");
		} else
			text_add(&line, "+++ exited with %d +++", WEXITSTATUS(status));
		finish(&line);
	}
	__atomic_sub_fetch(&clients, 1, __ATOMIC_RELAXED);
}

static void end(int status)
{
	(void)status;
	if (options.counts)
		count_report(print);
}

static const char *set_output(const char *value)
{
	output = lind_open_file(value, NULL, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	return output < 0 ? strerror(errno) : NULL;
}

static const char *set_string_limit(const char *value)
{
	char *rest;
	unsigned long limit = strtoul(value, &rest, 10);

	if (*rest || rest == value || *value == '-' || limit > 1 << 20)
		return "must be a number up to 1048576";
	options.string_limit = limit;
	return NULL;
}

LIND_SETS(set_counts, options.counts = options.counts_only = true)
LIND_SETS(set_counts_too, options.counts = true)
LIND_SETS(set_durations, options.durations = true)
LIND_SETS(set_times, options.times++)
LIND_SETS(set_relative, options.relative = true)
LIND_SETS(set_quiet, options.quiet = true)
LIND_SETS(set_verbose, options.verbose = true)
LIND_SETS(set_good, options.only_good = true)
LIND_SETS(set_bad, options.only_bad = true)
LIND_SETS(set_nothing, (void)0)

static lind_handle_fn *choose(uint32_t nr)
{
	const struct lind_syscall *row = lind_syscall(nr);

	/* Calls between grates and the runtime are not the program's; rt_sigreturn returns nowhere. */
	if ((nr >= 1000 && nr < LIND_NUMBERS && nr != SYS_spawn) || nr == SYS_rt_sigreturn)
		return NULL;
	if (row ? !selected(row) : !everything_selected())
		return NULL;
	return nr == SYS_exit || nr == SYS_exit_group ? on_exit_call : on_call;
}

LIND_OPTION("e", "-", "value");
LIND_OPTION("o", "output", "writes");
LIND_OPTION("s", "string-limit", "value");

int main(int argc, char **argv)
{
	static const struct lind_option list[] = {
		{ 'e', NULL, "EXPR",
		    "select calls by trace=CALLS: names, or classes such as %file; ! in front excludes them",
		    select_calls },
		{ 'o', "output", "FILE", "write to FILE, not to standard error", set_output },
		{ 's', "string-limit", "SIZE", "show at most SIZE bytes of a string (default 32)", set_string_limit },
		{ 'v', "no-abbrev", NULL, "show all of structs and environments", set_verbose },
		{ 'c', "summary-only", NULL, "print only a table of calls, times and errors", set_counts },
		{ 'C', "summary", NULL, "print that table, too", set_counts_too },
		{ 'T', "syscall-times", NULL, "show how long each call took", set_durations },
		{ 't', NULL, NULL, "show the time of day; -tt with microseconds, -ttt since 1970", set_times },
		{ 'r', "relative-timestamps", NULL, "show the time since the previous call", set_relative },
		{ 'z', NULL, NULL, "show only calls that succeed", set_good },
		{ 'Z', NULL, NULL, "show only calls that fail", set_bad },
		{ 'q', "quiet", NULL, "print no lines about cages that end", set_quiet },
		{ 'f', "follow-forks", NULL, "have no effect: children are always followed", set_nothing },
	};
	static const struct lind_lifecycle lifecycle = { .start = start, .fork = forked, .exit = ended, .end = end };

	lind_options(list, sizeof list / sizeof *list, "Prints system calls, as strace(1) does.", &argc, &argv);
	lind_grate_lifecycle(&lifecycle);
	lind_grate_choose(choose);
	return lind_grate_main(argc, argv);
}
