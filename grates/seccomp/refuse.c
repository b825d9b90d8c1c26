/* Handles a call that is not simply allowed, and prints the line that says so. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include "seccomp.h"
#include "strace.h"

#define CONDEMNED 1024

bool quiet;
struct options options = { .string_limit = 64 };

static long lines = 1000;

const char *set_lines(const char *value)
{
	char *end;

	lines = strtol(value, &end, 10);
	return *end || end == value || lines < 0 ? "must be a number" : NULL;
}

/* Where a program was started from, or "?". */
static void name_of(uint64_t cage, char *to, size_t size)
{
	struct lind_arg none = { 0, cage };
	int64_t n = lind_call(SYS_readlink, cage, lind_mine("/proc/self/exe"), lind_mine(to),
	    (struct lind_arg){ size - 1, cage }, none, none, none);

	if (n <= 0 || (size_t)n >= size)
		strcpy(to, "?");
	else
		to[n] = 0;
}

static void put_call(struct text *line, const struct lind_call *c)
{
	struct traced t = { .row = lind_syscall(c->nr), .call = c };

	if (!t.row) {
		text_add(line, "call %u", c->nr);
		return;
	}
	args_before(&t);
	text_add(line, "%s(", t.row->name);
	for (int i = 0; i < t.count; i++) {
		if (i == t.skip)
			continue;
		text_bytes(line, ", ", i ? 2 : 0);
		/* The call has not run, so its results are missing. */
		if (!t.args[i].length)
			text_add(line, c->args[i].value ? "%#llx" : "NULL", (unsigned long long)c->args[i].value);
		text_bytes(line, t.args[i].data, t.args[i].length);
	}
	text_add(line, ")");
	for (int i = 0; i < 6; i++)
		text_free(&t.args[i]);
	text_free(&t.after);
}

/* An unknown number is ENOSYS, whatever the policy says. */
static int error_of(const struct lind_call *c, const struct step *s)
{
	return lind_syscall(c->nr) ? s->rule->error : ENOSYS;
}

/* The place of the rule that decides, and if it is none of its own the one that nearly did. */
static void put_rule(struct text *to, const struct lind_call *c, const struct step *s, const char *path)
{
	const struct lind_param *other = NULL;
	const struct step *near = s->last && s->action >= DENY ? nearest(c, path, &other) : NULL;

	text_add(to, "%s", s->rule->where);
	if (near && other)
		text_add(to, "; %s allows this%s with other %s", near->rule->where, path ? " path" : "", other->name);
	else if (near)
		text_add(to, "; %s allows this call on other paths", near->rule->where);
}

void explain(const struct lind_call *c, const struct step *s, const char *path)
{
	static const char *const verbs[] = { "allowed", "logged", "denied", "killed" };
	char name[PATH_MAX];
	struct text line, quoted, rule;
	long left;

	if (quiet || __atomic_load_n(&lines, __ATOMIC_RELAXED) < 0)
		return;
	if ((left = __atomic_fetch_sub(&lines, 1, __ATOMIC_RELAXED)) <= 0) {
		if (!left)
			lind_log("there were many lines: no more will be printed");
		return;
	}
	text_init(&line);
	text_init(&quoted);
	text_init(&rule);
	put_rule(&rule, c, s, path);
	name_of(c->target, name, sizeof name);
	text_quoted(&quoted, name, strlen(name), 128, false);
	put_call(&line, c);
	/* The client may have changed what its pointers lead to since. */
	if (path) {
		text_add(&line, " leads to ");
		text_quoted(&line, path, strlen(path), PATH_MAX, false);
	}
	if (s->action < DENY ||
	    !lind_denied(
		c->target, c->nr, s->action == DENY ? error_of(c, s) : 0, rule.data, line.data, path ? path : ""))
		lind_log("%s%s%s: %s%s%s%s: cage %llu %s: %s", verbs[s->action], s->action == DENY ? " with " : "",
		    s->action == DENY ? lind_errno_name(error_of(c, s)) : "", rule.data, s->rule->comment ? " (" : "",
		    s->rule->comment ? s->rule->comment : "", s->rule->comment ? ")" : "",
		    (unsigned long long)c->target, quoted.data, line.data);
	text_free(&line);
	text_free(&quoted);
	text_free(&rule);
}

/* Whether a cage was to be killed before, and is still there. */
static bool condemned_before(uint64_t cage)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static uint64_t list[CONDEMNED];
	static unsigned next;
	bool found = false;

	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < CONDEMNED; i++)
		found |= list[i] == cage;
	if (!found)
		list[next++ % CONDEMNED] = cage;
	pthread_mutex_unlock(&lock);
	return found;
}

/*
 * SIGSYS to the client, which can neither have a handler for it nor have it blocked in this thread.
 * If another of its threads undoes that in time, the next call that is not allowed meets SIGKILL;
 * this one is not made either way.
 */
static void end_client(const struct lind_call *c)
{
	struct {
		uint32_t handler, flags, restorer, mask[2];
	} action = { 0 };
	uint64_t set = UINT64_C(1) << (SIGSYS - 1);
	uint64_t id = c->target;
	struct lind_arg none = { 0, id }, size = { 8, id };

	if (condemned_before(id)) {
		lind_call_plain(SYS_kill, id, id, SIGKILL, 0, 0);
		return;
	}
	lind_call(SYS_rt_sigaction, id, (struct lind_arg){ SIGSYS, id }, lind_mine(&action), none, size, none, none);
	lind_call(
	    SYS_rt_sigprocmask, id, (struct lind_arg){ SIG_UNBLOCK, id }, lind_mine(&set), none, size, none, none);
	lind_call_plain(SYS_kill, id, id, SIGSYS, 0, 0);
}

int64_t refuse(const struct lind_call *c, const struct step *s, const char *path)
{
	if (is_starter(c->target))
		return lind_forward(c);
	explain(c, s, path);
	switch (s->action) {
	case KILL:
		end_client(c);
		return -EPERM;
	case DENY:
		return -error_of(c, s);
	default:
		return lind_forward(c);
	}
}
