/*
 * Calls about which a rule wants to know a path or an address. The decision is about a copy in our
 * memory, or a file that we hold, and the call is then made on the same copy or file: a client that
 * overwrites the original meanwhile changes nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <lind/paths.h>
#include <lind/transfer.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>
#include "seccomp.h"
#include "../sdk/c/core/program.h"
#include "strace.h"

/* The subject of a call. */
struct subject {
	const struct lind_call *call;
	uint32_t as;   /* the call whose rules decide */
	const char *path;  /* without links; NULL if there is none */
	const struct sockaddr_storage *address;
	size_t length;
};

/* Where an address that is a path leads depends on links and on the current directory: such are
 * known only when they are plain. */
static bool known(const struct subject *s)
{
	const struct sockaddr_un *un = (const void *)s->address;
	size_t n = s->length - offsetof(struct sockaddr_un, sun_path);

	if (!s->address)
		return s->path[0] == '/';
	if (s->address->ss_family != AF_UNIX || s->length <= offsetof(struct sockaddr_un, sun_path) || !un->sun_path[0])
		return true;
	return un->sun_path[0] == '/' && !memmem(un->sun_path, n, "/..", 3);
}

/* A rule that allows has to match; one that forbids holds also for what leads nobody knows
 * where. */
static bool matches(const struct step *step, const struct subject *s)
{
	const struct patterns *p = step->patterns;

	if (!p)
		return true;
	if (!s->path && !s->address)
		return step->action < DENY;
	if (!known(s))
		return step->action >= DENY || (p->unnamed && s->path);
	for (size_t i = 0; s->path && i < p->path_count; i++)
		if (glob(p->paths[i], s->path))
			return true;
	for (size_t i = 0; s->address && i < p->address_count; i++)
		if (address_matches(&p->addresses[i], s->address, s->length))
			return true;
	return false;
}

static const struct step *decide_about(const struct subject *s)
{
	const struct step *step = steps_of(s->as);

	while (!step->last && !(all_hold(step, s->call) && matches(step, s)))
		step++;
	return step;
}

static const struct lind_param *first_other(const struct step *s, const struct lind_call *c)
{
	const struct lind_syscall *row = lind_syscall(c->nr);

	for (uint32_t i = 0; row && i < s->count; i++) {
		const struct condition *one = &conditions_[s->first + i];

		if (one->arg < row->count && !holds(one, c->args[one->arg].value))
			return &row->args[one->arg];
	}
	return NULL;
}

const struct step *nearest(const struct lind_call *c, const char *path, const struct lind_param **other)
{
	struct subject s = { .call = c, .as = c->nr, .path = path };
	const struct step *near = NULL;

	for (const struct step *step = steps_of(c->nr); !step->last; step++) {
		bool matching = !step->patterns || !path || matches(step, &s), holding = all_hold(step, c);

		/* The same path with other flags is nearer than the same call elsewhere. */
		if (step->action >= DENY || !step->rule->where || matching == holding || (near && !matching))
			continue;
		near = step;
		*other = holding ? NULL : first_other(step, c);
	}
	return near;
}

/* 0 if the call may be made, else the client's answer. */
static int64_t settle(const struct subject *s)
{
	const struct step *step;

	if (learning()) {
		learn_address(s->call, s->as, s->address, s->length, s->address && known(s));
		return 0;
	}
	step = decide_about(s);

	if (step->action >= DENY)
		return refuse(s->call, step, s->path);
	if (step->action == LOG)
		explain(s->call, step, s->path);
	return 0;
}

static int settle_path(const struct lind_call *c, unsigned effect, const struct lind_place *place, void *arg)
{
	struct subject s = {
		.call = c, .as = c->nr == SYS_spawn && !ruled(SYS_spawn) ? SYS_execve : c->nr, .path = place->path
	};

	(void)arg;
	if (learning()) {
		learn_path(c, c->nr, effect, place, known(&s));
		return 0;
	}
	return (int)settle(&s);
}

/* Rights to what is open already, as grates behind this one ask about each directory on a
 * client's way: nothing is looked up, and nothing read. */
static bool asks_about_open(const struct lind_call *c)
{
	char first;

	return c->nr == SYS_faccessat2 && lind_arg32(c, 3) & AT_EMPTY_PATH && (int32_t)c->args[0].value >= 0 &&
	    !lind_read(c->args[1], &first, 1) && !first;
}

int64_t on_path_call(const struct lind_call *c)
{
	if (asks_about_open(c))
		return lind_forward(c);
	return lind_path_call(c, NULL, settle_path, NULL);
}

/* Interpreters of scripts are programs, too. */
int64_t on_exec_call(const struct lind_call *c)
{
	return lind_path_exec(c, NULL, settle_path, NULL);
}

/* By the rules of execve, unless there are rules of its own. */
int64_t on_spawned_path(const struct lind_call *c)
{
	return lind_path_exec(c, NULL, learn_lists ? note_path : settle_path, NULL);
}

/* Connecting to the unspecified address (0.0.0.0 or ::) connects to this host. */
static void name_this_host(struct sockaddr_storage *address)
{
	struct sockaddr_in *in = (void *)address;
	struct sockaddr_in6 *in6 = (void *)address;

	if (address->ss_family == AF_INET && !in->sin_addr.s_addr)
		in->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (address->ss_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr))
		in6->sin6_addr = in6addr_loopback;
}

int64_t on_address_call(const struct lind_call *c)
{
	struct sockaddr_storage address = { 0 };
	struct lind_call copy = *c;
	struct subject s = { .call = &copy, .as = c->nr };
	int at = c->nr == SYS_sendto ? 4 : 1;
	uint32_t length = lind_arg32(c, at + 1);
	int64_t r;

	if (c->args[at].value) {
		if (length > sizeof address)
			return -EINVAL;
		if ((r = lind_read(c->args[at], &address, length)))
			return r;
		if (c->nr != SYS_bind)
			name_this_host(&address);
		copy.args[at] = lind_mine(&address);
		s.address = &address;
		s.length = length;
	}
	r = settle(&s);
	return r ? r : lind_forward(&copy);
}

/* A message; the decision is that of call `nr`. */
static int64_t pass_message(const struct lind_call *c, uint32_t nr)
{
	struct sockaddr_storage address = { 0 };
	struct lind_call asked = *c;
	struct subject s = { .call = &asked, .as = nr };
	struct lind_message m;
	int64_t r;

	if ((r = lind_message_sent(&m, c->args[1])))
		return r;
	if (m.own.msg_name) {
		s.length = m.own.msg_namelen < sizeof address ? m.own.msg_namelen : sizeof address;
		memcpy(&address, m.own.msg_name, s.length);
		name_this_host(&address);
		memcpy(m.own.msg_name, &address, s.length);
		s.address = &address;
	}
	asked.nr = nr;
	asked.args[1] = lind_mine(&m.own);
	if (nr == SYS_sendmmsg) {
		asked.args[3] = c->args[2];
		asked.args[2] = (struct lind_arg){ 1, c->target };
	}
	r = settle(&s);
	if (!r)
		r = lind_message_pass(&m, c, c->args[2].value);
	lind_message_free(&m);
	return r;
}

int64_t on_sendmsg(const struct lind_call *c)
{
	return pass_message(c, SYS_sendmsg);
}

static int64_t on_one_of_many(const struct lind_call *c)
{
	return pass_message(c, SYS_sendmmsg);
}

int64_t on_sendmmsg(const struct lind_call *c)
{
	return lind_message_each(c, on_one_of_many);
}
