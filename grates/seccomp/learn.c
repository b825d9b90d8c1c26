/*
 * --learn: which calls were made, with which values of those arguments that are one of few, about
 * which paths and addresses. Paths are found as they are under a policy, by the same walk, so that
 * the policy sees what was learned.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "learn.h"
#include "strace.h"

bool learn_names, learn_lists;

static const char *output;
static int output_fd;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct learned *learned[NUMBERS];

/* Opened before the program runs, which may do with names as it likes: remove this one, or let
 * it lead somewhere else. */
const char *set_learn(const char *path)
{
	if (output)
		close(output_fd);
	if ((output_fd = lind_open_file(path, NULL, O_WRONLY | O_CREAT | O_TRUNC, 0644)) < 0)
		return strerror(errno);
	output = lind_file_name(path);
	return NULL;
}

bool learning(void)
{
	return output;
}

void add_value(struct set *s, uint32_t value)
{
	for (unsigned i = 0; i < s->count && i < FEW_VALUES; i++)
		if (s->values[i] == value)
			return;
	if (s->count < FEW_VALUES)
		s->values[s->count] = value;
	s->count += s->count <= FEW_VALUES;
}

static bool is_open(uint32_t nr)
{
	return nr == SYS_open || nr == SYS_openat || nr == SYS_openat2 || nr == SYS_creat;
}

bool is_choice(const struct lind_syscall *row, int at)
{
	static const char *const selectors[] = { "cmd", "flags", "kind", "op", "option", "protocol", "which" };
	const struct lind_param *param = &row->args[at];

	switch (param->kind) {
	case LIND_VALUE:
	case LIND_FLAGS:
	case LIND_SIGNAL:
	case LIND_UID:
	case LIND_GID:
		return true;
	case LIND_MODE:
		/* Without O_CREAT there is anything. */
		return !is_open(row->nr);
	case LIND_INT:
	case LIND_UINT:
		for (size_t i = 0; i < sizeof selectors / sizeof *selectors; i++)
			if (!strcmp(param->name, selectors[i]))
				return true;
		return false;
	default:
		return false;
	}
}

static struct learned *of_call(uint32_t nr)
{
	struct learned **l = &learned[nr];

	if (!*l && !(*l = calloc(1, sizeof **l)))
		lind_die("out of memory");
	(*l)->made = true;
	return *l;
}

static bool has_values(const struct group *g, const struct lind_syscall *row, const struct lind_call *c)
{
	for (int i = 0; i < row->count; i++)
		if (g->args[i].count && g->args[i].values[0] != lind_arg32(c, i))
			return false;
	return true;
}

static void join(struct learned *l)
{
	struct group *first = &l->groups[0];

	for (unsigned k = 1; k < l->count; k++) {
		struct group *g = &l->groups[k];
		char **things;
		size_t n = tree_list(g->things, &things);

		for (int i = 0; i < 6; i++)
			for (unsigned v = 0; v < g->args[i].count; v++)
				add_value(&first->args[i], g->args[i].values[v]);
		for (size_t i = 0; i < n; i++)
			tree_add(&first->things, things[i]);
		free(things);
		first->anything |= g->anything;
	}
	l->count = 1;
	l->joined = true;
}

/* The group that a call with these values belongs to. */
static struct group *group_of(struct learned *l, const struct lind_syscall *row, const struct lind_call *c)
{
	struct group *g = l->groups;

	if (!l->joined) {
		for (; g < l->groups + l->count; g++)
			if (has_values(g, row, c))
				return g;
		if (l->count == FEW_GROUPS)
			join(l);
		g = l->joined ? l->groups : &l->groups[l->count++];
	}
	for (int i = 0; i < row->count; i++)
		if (is_choice(row, i))
			add_value(&g->args[i], lind_arg32(c, i));
	return g;
}

int64_t on_learned_call(const struct lind_call *c)
{
	const struct lind_syscall *row = lind_syscall(c->nr);

	if (row && row->nr < NUMBERS) {
		pthread_mutex_lock(&lock);
		of_call(row->nr);
		if (!learn_names)
			group_of(learned[row->nr], row, c);
		pthread_mutex_unlock(&lock);
	}
	return lind_pass(c);
}

/* A call with a path or an address that may be noted; where nothing is found there is nothing to
 * note but that it was made. */
int64_t on_learned_looking(const struct lind_call *c)
{
	pthread_mutex_lock(&lock);
	of_call(c->nr)->looks = true;
	pthread_mutex_unlock(&lock);
	return looking(c->nr)(c);
}

static void note(const struct lind_call *c, uint32_t as, const char *thing, bool anything)
{
	struct learned *l = of_call(as);
	struct group *g = group_of(l, lind_syscall(as), c);

	l->looks = true;
	g->anything |= anything;
	if (thing)
		tree_add(&g->things, thing);
}

/* Names that are made so that they are new, and go again, are others in the next run. */
static void note_name(const struct lind_call *c, unsigned effect, const struct lind_place *place)
{
	bool opens = is_open(c->nr), moves = c->nr == SYS_rename || c->nr == SYS_renameat || c->nr == SYS_renameat2;
	bool is_new = !opens || (c->nr != SYS_creat && c->args[c->nr == SYS_openat ? 2 : 1].value & O_EXCL);

	if (effect & LIND_DOES_CREATE && place->object < 0 && !moves)
		(is_new ? name_made : name_came)(place->path);
	else if (effect & LIND_DOES_REMOVE)
		name_removed(place->path);
}

void learn_path(const struct lind_call *c, uint32_t as, unsigned effect, const struct lind_place *place, bool known)
{
	pthread_mutex_lock(&lock);
	note(c, as, known ? place->path : NULL, !known);
	note_name(c, effect, place);
	pthread_mutex_unlock(&lock);
}

/* As a policy writes it. False if no policy can. */
static bool address_text(const struct sockaddr_storage *a, size_t length, char *text, size_t size)
{
	const struct sockaddr_in *in = (const void *)a;
	const struct sockaddr_in6 *in6 = (const void *)a;
	const struct sockaddr_un *un = (const void *)a;
	size_t n = length > sizeof a->ss_family ? length - sizeof a->ss_family : 0;
	char host[INET6_ADDRSTRLEN];

	if ((a->ss_family == AF_INET || a->ss_family == AF_UNSPEC) && length >= sizeof *in) {
		snprintf(
		    text, size, "%s:%u", inet_ntop(AF_INET, &in->sin_addr, host, sizeof host), ntohs(in->sin_port));
		return true;
	}
	if (a->ss_family == AF_INET6 && length >= 24) {
		bool mapped = IN6_IS_ADDR_V4MAPPED(&in6->sin6_addr);

		inet_ntop(mapped ? AF_INET : AF_INET6, in6->sin6_addr.s6_addr + (mapped ? 12 : 0), host, sizeof host);
		snprintf(text, size, mapped ? "%s:%u" : "[%s]:%u", host, ntohs(in6->sin6_port));
		return true;
	}
	if (a->ss_family != AF_UNIX || !n || n > sizeof un->sun_path ||
	    (!un->sun_path[0] && (n == 1 || memchr(un->sun_path + 1, 0, n - 1))))
		return false;
	snprintf(text, size, "unix:%s%.*s", un->sun_path[0] ? "" : "@",
	    (int)(un->sun_path[0] ? strnlen(un->sun_path, n) : n - 1), un->sun_path + !un->sun_path[0]);
	return true;
}

void learn_address(const struct lind_call *c, uint32_t as, const struct sockaddr_storage *a, size_t length, bool known)
{
	char text[200];
	bool said = a && known && address_text(a, length, text, sizeof text);

	pthread_mutex_lock(&lock);
	note(c, as, said ? text : NULL, a && !said);
	if (said && as == SYS_bind) {
		const struct sockaddr_in *in = (const void *)a;

		/* The port is at the same place in both families. */
		if (a->ss_family != AF_UNIX && !in->sin_port)
			free_port_bound();
		if (!strncmp(text, "unix:/", 6))
			name_made(text + 5);
	}
	pthread_mutex_unlock(&lock);
}

void write_learned(void)
{
	/* Whether threads meet on a lock, or a child ends before it is waited for, is chance: what is
	 * done then is needed by a run that did not do it, too. */
	static const uint32_t chance[] = { SYS_futex, SYS_sched_yield, SYS_rt_sigsuspend };

	if (learn_lists) {
		write_lists(output_fd, output);
		return;
	}
	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < sizeof chance / sizeof *chance; i++)
		of_call(chance[i])->count = 0;
	write_policy(learned, output_fd, output);
	pthread_mutex_unlock(&lock);
}
