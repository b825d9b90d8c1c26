/* Makes calls fail, come short or late, by rule and seed, to test what programs do then. */
#include <errno.h>
#include <fcntl.h>
#include <lind/transfer.h>
#include <lind/grate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include "fault.h"

LIND_HANDLE(answers, any, NULL);
static lind_handle_fn on_run;
/* Looked at in any case, for the names of programs. */
LIND_HANDLE(answers, execve, on_run);
LIND_HANDLE(answers, execveat, on_run);
LIND_HANDLE(observes, spawn, on_run);

uint64_t seed;
static bool quiet, list, seeded;
static int log_file = -1;
static const char *first_name = "";

/* splitmix64 */
static uint64_t mix(uint64_t x)
{
	x += 0x9e3779b97f4a7c15;
	x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
	x = (x ^ x >> 27) * 0x94d049bb133111eb;
	return x ^ x >> 31;
}

/* The random number for the n-th call that a rule sees. */
static uint64_t draw(const struct rule *r, const struct client *c, uint64_t n)
{
	uint64_t x = mix(seed ^ mix((uint64_t)(r - rules) + 1));

	if (r->each)
		x = mix(x ^ c->lineage);
	return mix(x ^ n);
}

static struct client *client_new(uint64_t lineage, const char *name)
{
	struct client *c = calloc(1, sizeof *c);

	if (!c)
		lind_die("out of memory");
	c->lineage = lineage;
	snprintf(c->name, sizeof c->name, "%s", name);
	return c;
}

static void *start(uint64_t cage)
{
	(void)cage;
	return client_new(1, first_name);
}

static void *fork_(void *parent, uint64_t parent_cage, uint64_t cage, int spawned)
{
	struct client *p = parent;

	(void)parent_cage;
	if (!p)
		return start(cage);
	return client_new(mix(p->lineage ^ mix(__atomic_add_fetch(&p->children, 1, __ATOMIC_RELAXED))),
	    spawned ? p->next_name : p->name);
}

static void exec(void *client, uint64_t cage)
{
	struct client *c = client;

	(void)cage;
	if (c)
		memcpy(c->name, c->next_name, sizeof c->name);
}

static void exit_(void *client, uint64_t cage, int status)
{
	(void)cage;
	(void)status;
	free(client);
}

static void end(int status)
{
	(void)status;
	for (unsigned i = 0; i < rule_count && list; i++)
		lind_log("rule %u: %llu of %llu calls: %s", i + 1, (unsigned long long)rules[i].fired,
		    (unsigned long long)rules[i].seen, rules[i].text);
}

/* Whether the rule fires; `*n` is which call of its this is. */
static bool fires(struct rule *r, struct client *c, uint64_t *n, uint64_t *drawn)
{
	uint64_t *seen = r->each ? &c->of[r - rules].seen : &r->seen,
		 *fired = r->each ? &c->of[r - rules].fired : &r->fired;
	uint64_t before;

	*n = __atomic_add_fetch(seen, 1, __ATOMIC_RELAXED);
	*drawn = draw(r, c, *n);
	if (r->each)
		__atomic_add_fetch(&r->seen, 1, __ATOMIC_RELAXED);
	if (*n <= r->skip || (*n - r->skip) % r->every || (double)(*drawn >> 11) * 0x1p-53 >= r->chance)
		return false;
	before = __atomic_load_n(fired, __ATOMIC_RELAXED);
	do
		if (before >= r->times)
			return false;
	while (!__atomic_compare_exchange_n(fired, &before, before + 1, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
	if (r->each)
		__atomic_add_fetch(&r->fired, 1, __ATOMIC_RELAXED);
	return true;
}

static void say(const struct rule *r, const struct client *c, const struct lind_call *call, uint64_t n,
    const char *subject, const char *what)
{
	char line[600];
	int length =
	    snprintf(line, sizeof line, "%llu (%s) %s(%s): %s (rule %u, call %llu)\n", (unsigned long long)call->target,
		c->name, lind_call_name(call->nr), subject, what, (unsigned)(r - rules) + 1, (unsigned long long)n);

	if (log_file >= 0 && write(log_file, line, (size_t)length) < 0)
		return;
	if (log_file < 0 && !quiet)
		lind_log("%.*s", length - 1, line);
}

/* For the client, so that its signals end the wait; then the call is made at once. */
static void sleep_for(const struct lind_call *call, int64_t nanos)
{
	struct lind_arg none = { 0, call->target };
	struct timespec t = { .tv_sec = nanos / 1000000000, .tv_nsec = (long)(nanos % 1000000000) };

	lind_forward_clock_nanosleep(call, CLOCK_MONOTONIC, 0, &t, none);
}

/* At least one byte: none would be the end of a file. */
static uint64_t shorter(const struct rule *r, uint64_t length)
{
	uint64_t n = r->short_to ? r->short_to : length * r->short_percent / 100;

	return n >= length ? length : n ? n : 1;
}

/* A message is whole or is none. */
static bool is_stream(const struct lind_call *call)
{
	int type = SOCK_STREAM;
	uint32_t size = sizeof type;

	lind_forward_getsockopt(
	    call, (int)call->args[0].value, SOL_SOCKET, SO_TYPE, lind_mine(&type), lind_mine(&size));
	return type == SOCK_STREAM;
}

static int64_t short_pieces(const struct rule *r, const struct lind_call *call)
{
	bool writes = call->nr == SYS_writev || call->nr == SYS_pwritev || call->nr == SYS_pwritev2;
	struct lind_call own = *call;
	struct lind_vector v;
	struct iovec one;
	int64_t result;

	if ((result = lind_vector_read(&v, call->args[1], call->args[2].value)) < 0)
		return result;
	one.iov_len = v.total ? (size_t)shorter(r, v.total) : 0;
	one.iov_base = malloc(one.iov_len + 1);
	if (!one.iov_base || (writes && lind_vector_gather(&v, one.iov_base, one.iov_len) < 0))
		result = one.iov_base ? -EFAULT : -ENOMEM;
	else {
		own.args[1] = lind_mine(&one);
		own.args[2].value = 1;
		result = lind_forward(&own);
		if (result > 0 && !writes && lind_vector_scatter(&v, one.iov_base, (size_t)result) < 0)
			result = -EFAULT;
	}
	free(one.iov_base);
	lind_vector_free(&v);
	return result;
}

static int64_t short_message(const struct rule *r, const struct lind_call *call)
{
	bool writes = call->nr == SYS_sendmsg;
	struct lind_message m;
	int64_t result = writes ? lind_message_sent(&m, call->args[1]) : lind_message_room(&m, call->args[1]);

	if (result < 0)
		return result;
	if (m.piece.iov_len)
		m.piece.iov_len = (size_t)shorter(r, m.piece.iov_len);
	result = lind_message_pass(&m, call, call->args[2].value);
	if (!writes)
		result = lind_message_give(&m, result, call->args[2].value);
	lind_message_free(&m);
	return result;
}

static int64_t make_short(const struct rule *r, const struct lind_call *call)
{
	struct shape s = shape_of(call->nr);
	struct lind_call own = *call;

	if (s.pieces)
		return short_pieces(r, call);
	if (s.message)
		return short_message(r, call);
	if (own.args[s.length].value)
		own.args[s.length].value = shorter(r, own.args[s.length].value);
	return lind_forward(&own);
}

static int64_t fail(const struct rule *r, const struct lind_call *call)
{
	/* Linux's close frees the number whatever it answers. */
	if (call->nr == SYS_close) {
		int64_t result = lind_forward(call);

		return result == -EBADF ? result : -r->error;
	}
	/* brk says where the break is. */
	if (call->nr == SYS_brk)
		return lind_call_plain(SYS_brk, call->target, 0, 0, 0, 0);
	return -r->error;
}

static int64_t on_call(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);
	const struct rule *cut = NULL;
	char subject[256], what[64];

	for (unsigned i = 0; c && i < rule_count; i++) {
		struct rule *r = &rules[i];
		uint64_t n, drawn;

		if (!(r->calls[call->nr / 8] & 1 << call->nr % 8) || !rule_matches(r, c, call, subject, sizeof subject))
			continue;
		if ((r->short_to || r->short_percent) && (cut || !is_stream(call)))
			continue;
		if (!fires(r, c, &n, &drawn))
			continue;
		if (r->delay_to) {
			int64_t delay = r->delay + (int64_t)(mix(drawn) % (uint64_t)(r->delay_to - r->delay + 1));

			snprintf(what, sizeof what, "%lld.%03u ms later", (long long)(delay / 1000000),
			    (unsigned)(delay / 1000 % 1000));
			say(r, c, call, n, subject, what);
			sleep_for(call, delay);
		}
		if (r->error) {
			say(r, c, call, n, subject, lind_errno_name(r->error));
			return fail(r, call);
		}
		if (r->short_to || r->short_percent) {
			if (r->short_to)
				snprintf(what, sizeof what, "at most %llu bytes", (unsigned long long)r->short_to);
			else
				snprintf(what, sizeof what, "%u%% of its bytes", r->short_percent);
			say(r, c, call, n, subject, what);
			cut = r;
		}
	}
	return cut ? make_short(cut, call) : lind_pass(call);
}

/* For the names of programs. */
static int64_t on_run(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);

	if (c)
		lind_read_base_name(call->args[call->nr == SYS_execveat], c->next_name, sizeof c->next_name);
	return call->nr < MOST_CALLS ? on_call(call) : lind_pass(call);
}

/* For --explain: what rules do to a call, in their order. */
static void add_words(char *text, size_t size, bool at_times, const char *verb, const char *with)
{
	size_t n = strlen(text);

	snprintf(
	    text + n, size - n, "%s%s%s%s%s", n ? ", " : "", at_times ? "may " : "", verb, at_times ? "" : "s", with);
}

static const char *says(uint32_t nr)
{
	static char text[400];
	char with[40];

	*text = 0;
	for (unsigned i = 0; i < rule_count; i++) {
		const struct rule *r = &rules[i];
		bool at_times = r->path || r->program || r->kind || r->skip || r->every != 1 ||
		    r->times != UINT64_MAX || r->chance < 1;

		if (nr >= MOST_CALLS || !(r->calls[nr / 8] & 1 << nr % 8))
			continue;
		if (r->delay_to)
			add_words(text, sizeof text, at_times, "delay", "");
		if (r->short_to || r->short_percent)
			add_words(text, sizeof text, at_times, "shorten", "");
		snprintf(with, sizeof with, " with %s", lind_errno_name(r->error));
		if (r->error)
			add_words(text, sizeof text, at_times, "fail", with);
		if (r->error && !at_times)
			break;
	}
	return *text ? text : "sees";
}

static const char *set_seed(const char *value)
{
	char *end;

	seed = strtoull(value, &end, 0);
	seeded = true;
	return *value < '0' || *value > '9' || *end ? "must be a number" : NULL;
}

LIND_SETS(set_quiet, quiet = true)

LIND_SETS(set_list, list = true)

static const char *set_log(const char *value)
{
	log_file = lind_open_file(value, NULL, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0644);
	return log_file < 0 ? strerror(errno) : NULL;
}

static const char *set_config(const char *value)
{
	seeded = true;
	return rules_load(value);
}

LIND_OPTION("r", "rule", "value");
LIND_OPTION("-", "config", "toml");
LIND_OPTION("s", "seed", "value");
LIND_OPTION("o", "log", "writes");

static const struct lind_option options[] = {
	{ 'r', "rule", "CALL,..:KEY=VALUE,..", "make these calls fail, short or late; the README has the keys",
	    rule_add },
	{ 0, "config", "FILE", "read rules from a TOML file", set_config },
	{ 's', "seed", "N", "seed the random numbers with N (default: a new seed each run)", set_seed },
	{ 'o', "log", "FILE", "write the lines about single calls to FILE, not to standard error", set_log },
	{ 'q', "quiet", NULL, "print no lines about single calls", set_quiet },
	{ 0, "list", NULL, "print at the end how often each rule fired", set_list },
};

static const struct lind_lifecycle lifecycle = {
	.start = start, .fork = fork_, .exec = exec, .exit = exit_, .end = end
};

static lind_handle_fn *choose(uint32_t nr)
{
	for (unsigned i = 0; nr < MOST_CALLS && i < rule_count; i++)
		if (rules[i].calls[nr / 8] & 1 << nr % 8)
			return on_call;
	return NULL;
}

int main(int argc, char **argv)
{
	bool chance = false;
	struct timespec t;

	lind_options(options, sizeof options / sizeof *options, "Makes calls fail, move fewer bytes, or take longer.",
	    &argc, &argv);
	if (!rule_count)
		lind_die("no rules: --rule CALL:errno=NAME");
	for (unsigned i = 0; i < rule_count; i++)
		chance |= rules[i].chance < 1 || rules[i].delay != rules[i].delay_to;
	if (!seeded && chance) {
		clock_gettime(CLOCK_REALTIME, &t);
		seed = mix((uint64_t)t.tv_sec ^ (uint64_t)t.tv_nsec << 32) % 1000000;
		lind_log("seed %llu", (unsigned long long)seed);
	}
	first_name = lind_base_name(argv[1]);
	lind_grate_choose(choose);
	lind_explain_calls(says);
	lind_grate_lifecycle(&lifecycle);
	return lind_grate_main(argc, argv);
}
