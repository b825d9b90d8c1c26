#define _GNU_SOURCE
#include <argp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define KEY_USAGE (-3)

struct group {
	const struct argp *argp;
	int parent, index; /* whose child it is, and which */
	void *input, *hook, **child_inputs;
};

struct parser {
	struct argp_state state;
	struct group *groups;
	int count, error;
};

static const struct argp_option own_options[] = {
	{ "help", '?', 0, 0, 0, -1 }, { "usage", KEY_USAGE, 0, 0, 0, -1 }, { 0 },
}, version_option[] = {
	{ "version", 'V', 0, 0, 0, -1 }, { 0 },
};

static error_t own_parser(int key, char *argument, struct argp_state *s)
{
	(void)argument;
	if (key == '?') argp_state_help(s, s->out_stream, ARGP_HELP_STD_HELP);
	else if (key == KEY_USAGE) argp_state_help(s, s->out_stream, ARGP_HELP_USAGE | ARGP_HELP_EXIT_OK);
	else if (key == 'V') {
		if (argp_program_version_hook) argp_program_version_hook(s->out_stream, s);
		else fprintf(s->out_stream, "%s\n", argp_program_version);
		if (!(s->flags & ARGP_NO_EXIT)) exit(0);
	} else return ARGP_ERR_UNKNOWN;
	return 0;
}

static const struct argp own_argp = { own_options, own_parser }, version_argp = { version_option, own_parser };

static int count_groups(const struct argp *a)
{
	int n = 1;
	for (const struct argp_child *c = a->children; c && c->argp; c++) n += count_groups(c->argp);
	return n;
}

static int count_children(const struct argp *a)
{
	int n = 0;
	for (const struct argp_child *c = a->children; c && c->argp; c++) n++;
	return n;
}

/* Adds the groups of a parser. Returns whether there was enough memory. */
static int add_groups(struct parser *p, const struct argp *a, int parent, int index)
{
	int me = p->count++, n = count_children(a);
	p->groups[me] = (struct group){ a, parent, index };
	if (n && !(p->groups[me].child_inputs = calloc(n, sizeof(void *)))) return 0;
	for (int i = 0; i < n; i++)
		if (!add_groups(p, a->children[i].argp, me, i)) return 0;
	return 1;
}

static int tell(struct parser *p, struct group *g, int key, char *argument)
{
	struct argp_state *s = &p->state;
	if (!g->argp->parser) return ARGP_ERR_UNKNOWN;
	s->input = g->input;
	s->child_inputs = g->child_inputs;
	s->hook = g->hook;
	int error = g->argp->parser(key, argument, s);
	g->hook = s->hook;
	return error;
}

static int is_option(const struct argp_option *o)
{
	return o->name || o->key || o->doc || o->group;
}

static int has_short(const struct argp_option *o)
{
	return o->key > ' ' && o->key < 127 && !(o->flags & OPTION_DOC);
}

/* The option that an alias stands for. */
static const struct argp_option *meant(const struct argp_option *all, const struct argp_option *o)
{
	while (o > all && o->flags & OPTION_ALIAS) o--;
	return o;
}

static int run_option(struct parser *p, struct group *g, const struct argp_option *o, char *argument)
{
	int error = tell(p, g, o->key ? o->key : meant(g->argp->options, o)->key, argument);
	if (error == ARGP_ERR_UNKNOWN) argp_error(&p->state, "--%s: (PROGRAM ERROR) Option should have been recognized!?", o->name ? o->name : "?");
	return error;
}

static int long_option(struct parser *p, char *word, int dashes, int *found)
{
	struct argp_state *s = &p->state;
	char *value = strchr(word, '=');
	size_t n = value ? (size_t)(value++ - word) : strlen(word);
	const struct argp_option *best = 0;
	struct group *where = 0;
	int candidates = 0;

	*found = 1;
	for (int i = 0; i < p->count && candidates >= 0; i++) {
		const struct argp_option *o = p->groups[i].argp->options;
		for (; o && is_option(o); o++) {
			if (!o->name || o->flags & OPTION_DOC || strncmp(o->name, word, n)) continue;
			int key = o->key ? o->key : meant(p->groups[i].argp->options, o)->key;
			int same = best && where == &p->groups[i]
				&& key == (best->key ? best->key : meant(where->argp->options, best)->key);
			if (!same) candidates++;
			best = o;
			where = &p->groups[i];
			if (!o->name[n]) {
				candidates = -1;
				break;
			}
		}
	}
	if (!best && dashes == 1) return *found = 0;
	if (!best || candidates > 1) {
		argp_error(s, best ? "option '%.*s%.*s' is ambiguous" : "unrecognized option '%.*s%.*s'", dashes, "--", (int)n, word);
		return EINVAL;
	}
	const struct argp_option *o = meant(where->argp->options, best);
	if (!o->arg && value) {
		argp_error(s, "option '--%s' doesn't allow an argument", best->name);
		return EINVAL;
	}
	if (o->arg && !value && !(o->flags & OPTION_ARG_OPTIONAL)) {
		if (s->next >= s->argc) {
			argp_error(s, "option '--%s' requires an argument", best->name);
			return EINVAL;
		}
		value = s->argv[s->next++];
	}
	return run_option(p, where, best, value);
}

static int short_options(struct parser *p, char *word)
{
	struct argp_state *s = &p->state;
	while (*word) {
		int key = (unsigned char)*word++;
		struct group *where = 0;
		const struct argp_option *o = 0;
		for (int i = 0; i < p->count && !where; i++)
			for (o = p->groups[i].argp->options; o && is_option(o); o++)
				if (o->key == key && has_short(o)) {
					where = &p->groups[i];
					break;
				}
		if (!where) {
			argp_error(s, "invalid option -- '%c'", key);
			return EINVAL;
		}
		char *value = 0;
		const struct argp_option *real = meant(where->argp->options, o);
		if (real->arg) {
			if (*word) value = word;
			else if (!(real->flags & OPTION_ARG_OPTIONAL)) {
				if (s->next >= s->argc) {
					argp_error(s, "option requires an argument -- '%c'", key);
					return EINVAL;
				}
				value = s->argv[s->next++];
			}
		}
		int error = run_option(p, where, o, value);
		if (error || value) return error;
	}
	return 0;
}

static int argument(struct parser *p)
{
	struct argp_state *s = &p->state;
	char *word = s->argv[s->next++];
	int error = ARGP_ERR_UNKNOWN, from = s->next - 1;
	for (int i = 0; i < p->count && error == ARGP_ERR_UNKNOWN; i++) {
		s->next = from + 1;
		error = tell(p, &p->groups[i], ARGP_KEY_ARG, word);
		if (error != ARGP_ERR_UNKNOWN) break;
		s->next = from;
		error = tell(p, &p->groups[i], ARGP_KEY_ARGS, 0);
		if (!error && s->next == from) {
			s->next = s->argc;
			s->arg_num += s->argc - from;
			return 0;
		}
	}
	if (error == ARGP_ERR_UNKNOWN) s->next = from;
	if (!error && s->next > from) s->arg_num += s->next - from;
	return error;
}

/* Moves the words from..to before those at `at`. */
static void move_before(char **argv, int at, int from, int to)
{
	for (; from < to; from++, at++) {
		char *word = argv[from];
		memmove(argv + at + 1, argv + at, (from - at) * sizeof *argv);
		argv[at] = word;
	}
}

static int parse_words(struct parser *p)
{
	struct argp_state *s = &p->state;
	int in_order = s->flags & ARGP_IN_ORDER, first_argument = s->next, error = 0;
	/* Words before `first_argument` are done; from there to `next`, arguments wait. */
	while (!error && s->next < s->argc) {
		char *word = s->argv[s->next];
		int at = s->next, found = 1, ends = !strcmp(word, "--");
		if (word[0] != '-' || !word[1]) {
			if (in_order && !(s->flags & ARGP_NO_ARGS)) {
				error = argument(p);
				first_argument = s->next;
			} else if (getenv("POSIXLY_CORRECT") || in_order) break;
			else s->next++;
			continue;
		}
		s->next++;
		if (ends) s->quoted = first_argument + 1;
		else if (word[1] == '-') error = long_option(p, word + 2, 2, &found);
		else if (s->flags & ARGP_LONG_ONLY && (error = long_option(p, word + 1, 1, &found), found)) ;
		else error = short_options(p, word + 1);
		int taken = s->next - at;
		if (s->next >= s->argc && !ends && taken > s->argc - at) taken = s->argc - at;
		move_before(s->argv, first_argument, at, at + taken);
		first_argument += taken;
		if (ends) break;
	}
	s->next = error && error != ARGP_ERR_UNKNOWN ? s->next : first_argument;
	while (!error && s->next < s->argc && !(s->flags & ARGP_NO_ARGS)) error = argument(p);
	return error;
}

error_t argp_parse(const struct argp *argp, int argc, char **argv, unsigned flags, int *index, void *input)
{
	static const struct argp none;
	struct parser p = { 0 };
	struct argp_state *s = &p.state;
	int error = 0, n;
	char *slash = argc > 0 && argv[0] ? strrchr(argv[0], '/') : 0;
	if (!argp) argp = &none;
	*s = (struct argp_state){
		.root_argp = argp, .argc = argc, .argv = argv, .next = flags & ARGP_PARSE_ARGV0 ? 0 : 1, .flags = flags,
		.name = argc > 0 && argv[0] ? slash ? slash + 1 : argv[0] : program_invocation_short_name,
		.err_stream = stderr, .out_stream = stdout, .pstate = &p,
	};
	if (s->next > argc) s->next = argc;
	n = count_groups(argp) + 2;
	p.groups = calloc(n, sizeof *p.groups);
	if (!p.groups) return ENOMEM;
	if (!add_groups(&p, argp, -1, 0)) error = ENOMEM;
	n = p.count;
	if (!(flags & ARGP_NO_HELP)) {
		add_groups(&p, &own_argp, -1, 0);
		if (argp_program_version || argp_program_version_hook) add_groups(&p, &version_argp, -1, 0);
	}
	p.groups[0].input = input;
	for (int i = 0; i < n && !error; i++) {
		struct group *g = &p.groups[i];
		if (g->parent >= 0) g->input = p.groups[g->parent].child_inputs[g->index];
		if (!g->argp->parser && g->child_inputs) g->child_inputs[0] = g->input;
		error = tell(&p, g, ARGP_KEY_INIT, 0);
		if (error == ARGP_ERR_UNKNOWN) error = 0;
	}
	if (!error) error = parse_words(&p);
	if (!error && s->next >= argc) {
		for (int i = 0; i < n && !s->arg_num && !error; i++)
			if ((error = tell(&p, &p.groups[i], ARGP_KEY_NO_ARGS, 0)) == ARGP_ERR_UNKNOWN) error = 0;
		for (int i = n - 1; i >= 0 && !error; i--)
			if ((error = tell(&p, &p.groups[i], ARGP_KEY_END, 0)) == ARGP_ERR_UNKNOWN) error = 0;
	} else if (error == ARGP_ERR_UNKNOWN && index) {
		error = 0;
	} else if (error == ARGP_ERR_UNKNOWN || (!error && !index)) {
		argp_error(s, "Too many arguments");
		error = ARGP_ERR_UNKNOWN;
	}
	if (index) *index = s->next;
	for (int i = 0; i < n; i++) {
		int told = tell(&p, &p.groups[i], error ? ARGP_KEY_ERROR : ARGP_KEY_SUCCESS, 0);
		if (!error && told && told != ARGP_ERR_UNKNOWN) error = told;
	}
	for (int i = n - 1; i >= 0; i--) tell(&p, &p.groups[i], ARGP_KEY_FINI, 0);
	for (int i = 0; i < p.count; i++) free(p.groups[i].child_inputs);
	free(p.groups);
	return error == ARGP_ERR_UNKNOWN ? EINVAL : error;
}
