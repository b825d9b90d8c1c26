/* The seccomp grate: options, which calls it wants to see, and the calls that numbers decide
 * about. */
#include <errno.h>
#include <lind/compose.h>
#include <lind/typed.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "seccomp.h"
#include "strace.h"

LIND_DECLARE("answers", any);
/* Not among any, which leaves them out. */
LIND_DECLARE("answers", exit);
LIND_DECLARE("answers", exit_group);
LIND_DECLARE("answers", rt_sigreturn);
LIND_DECLARE("answers", spawn);

static const char *policy;
static bool docker, verbose;

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

static void learned(int status)
{
	(void)status;
	write_learned();
}

/* Calls that the default entry leaves out. */
static bool outside_default(uint32_t nr)
{
	return nr == SYS_exit || nr == SYS_exit_group || nr == SYS_rt_sigreturn || (nr >= 1000 && nr < NUMBERS);
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
	snprintf(text, sizeof text, "refuses with %s", errno_text(s->rule->error));
	return s->action == DENY ? text : "sees, and logs";
}

static size_t add_handlers(struct lind_handler *on, enum action otherwise)
{
	size_t n = 0, free_of_charge = 0, decided = 0;
	const struct lind_syscall *row;

	for (uint32_t nr = 0; nr < NUMBERS; nr++) {
		lind_handle_fn *handle = handler_of(nr);

		if (!handle && (otherwise == ALLOW || outside_default(nr)))
			continue;
		/* Covered by the default entry. */
		if (handle == on_call && otherwise != ALLOW && !outside_default(nr))
			continue;
		on[n++] = (struct lind_handler){ nr, handle };
	}
	if (otherwise != ALLOW)
		on[n++] = (struct lind_handler){ LIND_NR_ANY, on_call };
	for (size_t i = 0; (row = syscall_at(i)); i++) {
		enum action action;

		if (!handler_of(row->nr))
			free_of_charge++;
		else if (!always(row->nr, &action))
			decided++;
	}
	if (verbose)
		lind_log("%zu calls pass without entering, %zu are decided by their arguments, the others never pass",
		    free_of_charge, decided);
	return n;
}

static size_t add_learning(struct lind_handler *on)
{
	const struct lind_syscall *row;
	size_t n = 0;

	for (size_t i = 0; (row = syscall_at(i)); i++)
		if (row->nr >= NUMBERS)
			continue;
		else if (learn_lists)
			on[n++] = row->nr == SYS_rt_sigreturn ? (struct lind_handler){ row->nr, NULL }
							      : (struct lind_handler){ row->nr, noting_handler(row) };
		else if (!learn_names && (has_path(row) || has_address(row)))
			on[n++] = (struct lind_handler){ row->nr, on_learned_looking };
		else if (outside_default(row->nr) && row->nr != SYS_rt_sigreturn)
			on[n++] = (struct lind_handler){ row->nr, on_learned_call };
	on[n++] = (struct lind_handler){ LIND_NR_ANY, on_learned_call };
	return n;
}

LIND_OPTION("p", "policy", "reads");
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
		{ 'q', "quiet", NULL, "explain no decisions", set_quiet },
		{ 'v', "verbose", NULL, "print how many calls are interposed, and names in a policy that are not calls",
		    set_verbose },
	};
	static const struct lind_lifecycle end_of_learning = { .end = learned };
	static struct lind_handler on[NUMBERS + 1];
	const struct rule *otherwise;
	size_t n;

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
		n = add_learning(on);
	} else {
		otherwise = !policy ? read_lists() : docker ? read_json(policy, verbose) : read_toml(policy);
		finish_steps(otherwise);
		n = add_handlers(on, otherwise->action);
	}
	return lind_grate_run(on, n, argc, argv);
}
