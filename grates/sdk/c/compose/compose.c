/*
 * Composers: grates with brackets, `GRATE %{ ... %}`.
 *
 * An inner grate starts "%}" as it starts any program. We see that, because we interpose spawn and
 * execve below us, and start the bracket program instead. The bracket is a cage with the table that
 * a program behind the inner grates would have: calls made by its table (call_by) enter them. It
 * starts the rest of the line in a child, which gets a copy of our own table, and our handlers on
 * top.
 */
#include <errno.h>
#include <lind/compose.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include "../core/program.h"
#include "../core/sdk.h"

#define BRACKET "bracket_grate"
#define NUMBERS 1008u
/* In an argument that registration does not have: tells a composer further out that this grate
 * is not in Lind's style. */
#define BY_COMPOSER   0x636f6d70u
#define MOST_HANDLERS 4096u
#define MOST_OTHERS   256

struct stack {
	uint64_t view;   /* the bracket's cage; 0 until it is there */
	bool handled[NUMBERS];
	bool any;   /* handles NR_ANY */
	bool by_hand;   /* a grate registered rather than spawned: one in Lind's style */
	uint32_t others[MOST_OTHERS]; /* handled numbers from NUMBERS on */
	size_t other_count;
};

/* A grate that uses LIND_COMPOSES says how many calls; this line says "any". */
__asm__(".section .custom_section.lind.grate,\"\",@\n.asciz \"composes any\"\n.text\n");

const char lind_operands_[] = "%{ GRATE... %}... PROGRAM [ARGS]...";

static const struct lind_composer *composer;
static struct stack stacks[LIND_STACKS];
static unsigned current;

/* The client that the program after the last bracket is, and whether it has ended. */
static uint64_t program;
static bool program_ended;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ended = PTHREAD_COND_INITIALIZER;

/* For --explain, which knows of no grate inside: whether any handles the call. */
static bool assumed;

static struct lind_spawn_handler *routes;
static size_t route_count;

static bool in_others(const struct stack *s, uint32_t nr)
{
	for (size_t i = 0; i < s->other_count; i++)
		if (s->others[i] == nr)
			return true;
	return false;
}

bool lind_handled_inside(unsigned stack, uint32_t nr)
{
	const struct stack *s = &stacks[stack];

	if (lind_explains())
		return assumed;
	if (nr < NUMBERS && s->handled[nr])
		return true;
	return (s->any && !lind_outside_any(nr)) || in_others(s, nr);
}

bool lind_style_inside(unsigned stack)
{
	return stacks[stack].by_hand;
}

uint64_t lind_view(unsigned stack)
{
	return stacks[stack].view;
}

int64_t lind_enter(unsigned stack, const struct lind_call *c)
{
	/* The one that is being served the kernel has at hand. */
	return lind_import_syscall(SYS_call_by, c == lind_serving_ ? 0 : (uintptr_t)c, stacks[stack].view, 0, 0, 0, 0);
}

static int64_t put(uint64_t cage, uint32_t nr, lind_handle_fn *handle)
{
	return lind_import_syscall(SYS_register_handler, cage, nr, lind_self(), (uintptr_t)handle, 0, BY_COMPOSER);
}

/* Whether a grate inside sends on what a client behind the bracket does: that is none of the
 * stack's own affairs. */
static bool of_client(const struct lind_call *c)
{
	return stacks[current].view && c->caller != c->target;
}

/* A grate of the current stack handles this number from now on. */
static int64_t handles(uint64_t grate, uint64_t number)
{
	struct stack *s = &stacks[current];
	uint32_t nr = (uint32_t)number;
	int64_t r = 0;

	/* Routes are made once: what came later would get calls past us. */
	if (s->view)
		return -EPERM;
	if (number > UINT32_MAX)
		return 0;
	pthread_mutex_lock(&lock);
	if (nr == LIND_NR_ANY)
		s->any = true;
	else if (nr < NUMBERS)
		s->handled[nr] = true;
	else if (!in_others(s, nr)) {
		if (s->other_count == MOST_OTHERS)
			r = -ENOSPC;
		else
			s->others[s->other_count++] = nr;
	}
	pthread_mutex_unlock(&lock);
	/* Look at the calls that the inner grate sends on. A call that it sends to another grate of the
	 * stack does not concern us. */
	if (!r && composer->leaving) {
		lind_handle_fn *handle = composer->leaving(current, nr);

		if (handle && (r = put(grate, nr, handle)) == -EPERM)
			r = 0;
	}
	return r;
}

static bool is_bracket(struct lind_arg path)
{
	char name[4];

	return lind_read_string(path, name, sizeof name) == 2 && !strcmp(name, "%}");
}

static int64_t on_register(const struct lind_call *c)
{
	int64_t r = of_client(c) || c->args[4].value & 2 ? 0 : handles(c->args[2].value, c->args[1].value);

	if (r < 0)
		lind_log(
		    "a grate inside registers for call %llu too late: refused", (unsigned long long)c->args[1].value);
	if (!of_client(c) && c->args[5].value != BY_COMPOSER)
		stacks[current].by_hand = true;
	return r < 0 ? r : lind_forward(c);
}

/* The bracket takes the place of the program that `c` runs. */
static int64_t run_bracket(struct lind_call *c)
{
	int64_t r = -ENOTDIR;
	char name[PATH_MAX];

	for (unsigned n = 0; program_missing(BRACKET, r) && n < PROGRAM_NAMES; n++)
		if (program_name(BRACKET, n, name)) {
			c->args[0] = lind_mine(name);
			r = lind_forward(c);
		}
	return r;
}

static int64_t on_spawn(const struct lind_call *c)
{
	struct lind_call changed = *c;
	struct lind_spawn_handler *table;
	size_t count = (size_t)c->args[4].value;
	int64_t r;

	if (of_client(c))
		return lind_forward(c);
	if (c->args[4].value > MOST_HANDLERS)
		return -E2BIG;
	if (!(table = malloc((count + 1) * sizeof *table)))
		return -ENOMEM;
	r = lind_read(c->args[3], table, count * sizeof *table);
	for (size_t i = 0; i < count && !r; i++)
		r = handles(c->target, table[i].nr);
	if (!r) {
		changed.args[3] = lind_mine(table);
		r = is_bracket(c->args[0]) ? run_bracket(&changed) : lind_forward(&changed);
	}
	free(table);
	return r;
}

/* Grates in Lind's style fork, register, and exec. */
static int64_t on_execve(const struct lind_call *c)
{
	struct lind_call changed = *c;

	if (of_client(c) || !is_bracket(c->args[0]))
		return lind_forward(c);
	return run_bracket(&changed);
}

static int64_t on_bracket(const struct lind_call *c);

static const struct lind_spawn_handler marks[] = {
	{ LIND_BRACKET, (uint32_t)(uintptr_t)on_bracket },
	{ SYS_register_handler, (uint32_t)(uintptr_t)on_register },
	{ SYS_spawn, (uint32_t)(uintptr_t)on_spawn },
	{ SYS_execve, (uint32_t)(uintptr_t)on_execve },
};

#define MARKS (sizeof marks / sizeof *marks)

static int64_t put_all(uint64_t cage, const struct lind_spawn_handler *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		int64_t r = put(cage, table[i].nr, (lind_handle_fn *)(uintptr_t)table[i].entry);

		if (r < 0)
			return r;
	}
	return 0;
}

/* Grates inside that follow paths may get calls of a client whose root was changed before they
 * could know. */
static int64_t keep_root(const struct lind_call *c)
{
	(void)c;
	return -EPERM;
}

/* Nor would they know of the rules. */
static int64_t no_rules(const struct lind_call *c)
{
	(void)c;
	return -EOPNOTSUPP;
}

static bool is_landlock(uint32_t nr)
{
	return nr == SYS_landlock_create_ruleset || nr == SYS_landlock_restrict_self;
}

static void add_route(uint32_t nr)
{
	lind_handle_fn *handle = nr == SYS_chroot ? keep_root : is_landlock(nr) ? no_rules : composer->choose(nr);

	if (handle)
		routes[route_count++] = (struct lind_spawn_handler){ nr, (uint32_t)(uintptr_t)handle };
}

/* Every number once, however many stacks handle it. */
static int make_routes(void)
{
	if (!(routes = malloc((NUMBERS + LIND_STACKS * MOST_OTHERS + LIND_WATCHED) * sizeof *routes)))
		return -ENOMEM;
	for (uint32_t nr = 0; nr <= SYS_spawn; nr++)
		if (nr < 1000 || nr > 1000)
			add_route(nr);
	for (unsigned i = 0; i < composer->stacks; i++)
		for (size_t o = 0; o < stacks[i].other_count; o++) {
			bool seen = false;

			for (unsigned before = 0; before < i; before++)
				seen = seen || in_others(&stacks[before], stacks[i].others[o]);
			if (!seen)
				add_route(stacks[i].others[o]);
		}
	lind_watch_clients(routes, &route_count);
	return 0;
}

/* A cage that goes on after a bracket. Returns whether another stack follows. */
static int64_t enter_cage(uint64_t cage)
{
	int64_t r = lind_import_syscall(SYS_copy_handler_table_to_cage, lind_self(), cage, 0, 0, 0, 0);
	void *client;

	if (r < 0)
		return r;
	if (current + 1 < composer->stacks) {
		if ((r = put_all(cage, marks, MARKS)) < 0)
			return r;
		current++;
		return 1;
	}
	if ((r = make_routes()) < 0 || (r = put_all(cage, routes, route_count)) < 0)
		return r;
	/* Known from here on: only of clients we are told when they end. */
	client = lind_client(cage);
	program = cage;
	if (composer->entered)
		composer->entered(client, cage);
	return 0;
}

/* The status that a shell would give for the end of a child of `cage`. */
static int64_t wait_as(uint64_t cage, uint64_t pid)
{
	struct lind_arg none = { 0, cage };
	int status = 0;
	int64_t r;

	do
		r = lind_call(
		    SYS_wait4, cage, (struct lind_arg){ pid, cage }, lind_mine(&status), none, none, none, none);
	while (r == -EINTR);
	return r < 0 ? r : WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

static int64_t start_bracket(const struct lind_call *c)
{
	struct lind_arg none = { 0, c->target };
	struct lind_call spawn = { .nr = SYS_spawn,
		.caller = c->caller,
		.target = c->target,
		.args = { none, c->args[1], c->args[2], none, none, none } };

	return run_bracket(&spawn);
}

static int64_t on_bracket(const struct lind_call *c)
{
	struct stack *s = &stacks[current];

	if (c->caller != c->target)
		return -EPERM;
	switch (c->args[0].value) {
	case LIND_BRACKET_CLOSE:
		if (s->view || program)
			return -EBUSY;
		s->view = c->target;
		return 0;
	case LIND_BRACKET_ENTER:
		if (!s->view || program)
			return -EINVAL;
		if (c->args[1].value)
			lind_write(c->args[1], lind_name(), strlen(lind_name()) + 1);
		return enter_cage(c->target);
	case LIND_BRACKET_SPAWN:
		return start_bracket(c);
	case LIND_BRACKET_WAIT:
		return wait_as(c->target, c->args[1].value);
	case LIND_BRACKET_EXIT:
		return lind_call_plain(SYS_exit_group, c->target, c->args[1].value, 0, 0, 0);
	default:
		return -EINVAL;
	}
}

static void on_exit(void *client, uint64_t cage, int status)
{
	if (composer->lifecycle.exit)
		composer->lifecycle.exit(client, cage, status);
	if (cage != program)
		return;
	pthread_mutex_lock(&lock);
	program_ended = true;
	pthread_cond_broadcast(&ended);
	pthread_mutex_unlock(&lock);
}

/* argv[at] is `%{`: the place after its `%}`. */
static int closing(int at, int argc, char **argv)
{
	int depth = 0;

	for (; at < argc; at++) {
		depth += !strcmp(argv[at], "%{");
		depth -= !strcmp(argv[at], "%}");
		if (!depth)
			return at + 1;
	}
	lind_die("a %%{ without its %%}");
}

static void check_line(int argc, char **argv)
{
	int at = 1;

	for (unsigned i = 0; i < composer->stacks; i++) {
		if (at >= argc || strcmp(argv[at], "%{"))
			lind_die("%s: %%{ is expected, then grates, then %%}", at < argc ? argv[at] : "end of line");
		at = closing(at, argc, argv);
	}
	if (at >= argc)
		lind_die("no program to run after the last %%}");
	if (!strcmp(argv[at], "%{"))
		lind_die("too many %%{: it takes %u", composer->stacks);
}

static void explain_list(const char *name, bool handled)
{
	assumed = handled;
	lind_explain_list_(name);
	for (uint32_t nr = 0; nr <= SYS_spawn; nr++) {
		lind_handle_fn *handle = nr == 1000 ? NULL : composer->choose(nr);

		if (handle)
			lind_explain_call_(nr, composer->when ? composer->when(nr, handle) : "if it matches");
	}
}

static void explain(void)
{
	lind_explain_begin_();
	explain_list("handled", true);
	explain_list("others", false);
	lind_explain_end_();
}

int lind_compose_run(const struct lind_composer *how, int argc, char **argv)
{
	static struct lind_lifecycle lifecycle;
	int status;

	composer = how;
	if (argc)
		lind_set_name(argv[0]);
	lind_common_options_(&argc, &argv);
	if (lind_explains())
		explain();
	check_line(argc, argv);
	lifecycle = how->lifecycle;
	lifecycle.exit = on_exit;
	lind_grate_lifecycle(&lifecycle);
	/* It keeps its host thread: when a grate inside ends it has something to say, while the program
	 * goes on. */
	if ((status = lind_start_and_wait(!strcmp(argv[2], "%}") ? BRACKET : argv[2], argv + 2, marks, MARKS, 0)) < 0)
		return -status;
	/* Where a grate inside has ended before its program, calls that do not enter go on as before. */
	pthread_mutex_lock(&lock);
	if (program && !program_ended)
		lind_log(
		    "the grates inside have ended (status %d) before their program: calls that enter fail with EIO",
		    status);
	while (program && !program_ended)
		pthread_cond_wait(&ended, &lock);
	pthread_mutex_unlock(&lock);
	lind_ended(status);
	return status;
}
