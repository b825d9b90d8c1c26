/* The seccomp grate: options, which calls it wants to see, and the calls that numbers decide
 * about. */
#include <errno.h>
#include <lind/compose.h>
#include <lind/grate.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "seccomp.h"
#include "strace.h"

LIND_HANDLE(answers, any, NULL);
/* Not among any, which leaves them out. */
LIND_HANDLE(answers, exit, NULL);
LIND_HANDLE(answers, exit_group, NULL);
LIND_HANDLE(answers, rt_sigreturn, NULL);
LIND_HANDLE(answers, spawn, NULL);

static const char *policy;
static bool docker, verbose;
static lind_handle_fn *handler_of_others; /* for calls that no rule names */

/* The flags of libc's posix_spawn. */
#define SPAWN_FLAGS 0x4111u  /* CLONE_VM | CLONE_VFORK | SIGCHLD */

static int64_t on_call(const struct lind_call *c)
{
	const struct step *s = decide(c);

	return s->action == ALLOW ? lind_pass(c) : refuse(c, s, NULL);
}

static inline uint64_t nth(uint8_t n, uint64_t a0, uint64_t a1, uint64_t a2, uint64_t a3, uint64_t a4, uint64_t a5)
{
	switch (n) {
	case 0:
		return a0;
	case 1:
		return a1;
	case 2:
		return a2;
	case 3:
		return a3;
	case 4:
		return a4;
	default:
		return a5;
	}
}

/* An allowed call costs no more than the decision; the handler explains the others. */
LIND_FILTER(on_call)
{
	const struct step *s = steps_of(nr);

	for (; !s->last; s++) {
		const struct condition *c = conditions_ + s->first, *end = c + s->count;

		while (c < end && holds(c, nth(c->arg, a0, a1, a2, a3, a4, a5)))
			c++;
		if (c == end)
			break;
	}
	return s->action == ALLOW ? LIND_PASS : LIND_ASK;
}

/* Starting a program is making a process and running the program: both have to be allowed. The
 * path is looked at by execve's rules. */
static int64_t on_spawn(const struct lind_call *c)
{
	struct lind_call clone = {
		.nr = SYS_clone, .caller = c->caller, .target = c->target, .args = { { SPAWN_FLAGS, c->target } }
	};
	const struct step *s = decide(&clone);

	if (is_starter(c->target))
		return lind_pass(c);
	if (s->action >= DENY)
		return refuse(&clone, s, NULL);
	if (s->action == LOG)
		explain(&clone, s, NULL);
	return on_spawned_path(c);
}

static const char *set_policy(const char *value)
{
	size_t n = strlen(value);

	if (policy)
		return "there is a policy already";
	policy = value;
	docker = docker || (n > 5 && !strcmp(value + n - 5, ".json"));
	return NULL;
}

static const char *set_docker(const char *value)
{
	docker = true;
	return set_policy(value);
}

LIND_SETS(set_quiet, quiet = true)
LIND_SETS(set_verbose, verbose = true)
LIND_SETS(set_learn_names, learn_names = true)
LIND_SETS(set_learn_lists, learn_lists = true)
LIND_SETS(set_started, only_started = true)

static void learned(int status)
{
	(void)status;
	write_learned();
}

/* A program may always end and return from its signal handlers, unless a rule says otherwise. */
static bool let_go(uint32_t nr)
{
	/* The call of a bracket to its composer does nothing without a composer. */
	return nr == LIND_BRACKET || ((nr == SYS_exit || nr == SYS_exit_group || nr == SYS_rt_sigreturn) && !ruled(nr));
}

static lind_handle_fn *handler_of(uint32_t nr)
{
	enum action action;

	if (let_go(nr) || (always(nr, &action) && action == ALLOW && nr != SYS_spawn))
		return NULL;
	if (nr == SYS_spawn && !ruled(nr)) {
		enum action clone, exec;

		return always(SYS_clone, &clone) && always(SYS_execve, &exec) && clone == ALLOW && exec == ALLOW
		    ? NULL
		    : on_spawn;
	}
	return looks(nr) ? looking(nr) : on_call;
}

lind_handle_fn *looking(uint32_t nr)
{
	if (nr == SYS_sendmsg || nr == SYS_sendmmsg)
		return nr == SYS_sendmsg ? on_sendmsg : on_sendmmsg;
	if (nr == SYS_execve || nr == SYS_execveat)
		return on_exec_call;
	return nr == SYS_connect || nr == SYS_bind || nr == SYS_sendto ? on_address_call
	    : nr == SYS_spawn                                          ? on_spawned_path
								       : on_path_call;
}

/* For --explain. */
static const char *says(uint32_t nr)
{
	const struct step *s = steps_of(nr);
	static char text[40];

	if (learning())
		return NULL;
	if (!s->last || nr == SYS_spawn)
		return "may refuse, by the call's arguments";
	if (s->action == KILL)
		return "kills the program";
	snprintf(text, sizeof text, "refuses with %s", lind_errno_name(s->rule->error));
	return s->action == DENY ? text : "sees, and logs";
}

static lind_handle_fn *by_policy(uint32_t nr)
{
	return nr == LIND_NR_ANY ? handler_of_others : handler_of(nr);
}

static void count_handlers(void)
{
	size_t free_of_charge = 0, decided = 0;
	const struct lind_syscall *row;

	for (size_t i = 0; (row = lind_syscall_at(i)); i++) {
		enum action action;

		if (!handler_of(row->nr))
			free_of_charge++;
		else if (!always(row->nr, &action))
			decided++;
	}
	lind_log("%zu calls pass without entering, %zu are decided by their arguments, the others never pass",
	    free_of_charge, decided);
}

static lind_handle_fn *to_learn(uint32_t nr)
{
	const struct lind_syscall *row = lind_syscall(nr);

	if (nr == SYS_rt_sigreturn || (!row && lind_outside_any(nr)))
		return NULL;
	if (!row)
		return on_learned_call;
	if (learn_lists)
		return noting_handler(row);
	return !learn_names && (has_path(row) || has_address(row)) ? on_learned_looking : on_learned_call;
}

LIND_OPTION("p", "policy", "toml");
LIND_OPTION("-", "docker", "reads");
LIND_OPTION("-", "capabilities", "value");
LIND_OPTION("-", "learn", "writes");
LIND_OPTION("-", "calls", "value");
LIND_OPTION("-", "path", "value");
LIND_OPTION("-", "program", "value");
LIND_OPTION("-", "lines", "value");

int main(int argc, char **argv)
{
	static const struct lind_option list[] = {
		{ 'p', "policy", "FILE", "read the policy from FILE: TOML, or Docker's JSON if the name ends in .json",
		    set_policy },
		{ 0, "docker", "FILE", "read a policy in Docker's JSON", set_docker },
		{ 0, "capabilities", "LIST", "for Docker's JSON: assume that the program has these", set_capabilities },
		{ 0, "learn", "FILE", "deny nothing, and write the policy that allows just the calls that were made",
		    set_learn },
		{ 0, "calls", "LIST", "without a policy file: allow only these calls", add_call_list },
		{ 0, "path", "PATTERN", "without a policy file: allow only these files to calls with paths",
		    add_path_list },
		{ 0, "program", "PATTERN", "without a policy file: allow only these programs to run",
		    add_program_list },
		{ 0, "lists", NULL, "with --learn: write such lists, and the files that were changed and made",
		    set_learn_lists },
		{ 0, "learn-names", NULL, "with --learn: write names of calls only, without conditions",
		    set_learn_names },
		{ 0, "lines", "N", "explain at most N decisions (default 1000)", set_lines },
		{ 0, "started", NULL, "leave out the first program: the policy is about those that it starts",
		    set_started },
		{ 'q', "quiet", NULL, "explain no decisions", set_quiet },
		{ 'v', "verbose", NULL, "print how many calls are interposed, and names in a policy that are not calls",
		    set_verbose },
	};
	static const struct lind_lifecycle end_of_learning = { .end = learned };
	const struct rule *otherwise;

	lind_options(
	    list, sizeof list / sizeof *list, "Lets through the system calls that a policy allows.", &argc, &argv);
	if ((policy || has_lists()) && learning())
		lind_die("--policy and --learn exclude each other");
	if (policy && has_lists())
		lind_die("give the policy as a file, or as --calls, --path and --program");
	if (!policy && !has_lists() && !learning())
		lind_die("give it --policy FILE or --learn FILE");
	lind_explain_calls(says);
	if (learning()) {
		lind_grate_lifecycle(&end_of_learning);
		lind_grate_choose(to_learn);
	} else {
		otherwise = !policy ? read_lists() : docker ? read_json(policy, verbose) : read_policy(policy);
		finish_steps(otherwise);
		handler_of_others = otherwise->action == ALLOW ? NULL : on_call;
		follow_starters();
		lind_grate_choose(by_policy);
		if (verbose)
			count_handlers();
	}
	return lind_grate_main(argc, argv);
}
