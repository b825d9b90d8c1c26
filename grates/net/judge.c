/* Calls by the rules: the first that matches decides; without one it is no. */
#include <errno.h>
#include <fnmatch.h>
#include <lind/rules.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include "net.h"

/* Whether a rule is about such uses, whatever the host is. */
static bool is_about(const struct rule *r, enum verb verb, unsigned proto, const struct address *a)
{
	bool port = !r->range_count || a->family == AF_UNIX;

	for (unsigned i = 0; i < r->range_count; i++)
		port |= a->port >= r->ports[i].from && a->port <= r->ports[i].to;
	return port && r->verbs & verb && r->protos & proto;
}

static bool matches(const struct rule *r, enum verb verb, unsigned proto, const struct address *a)
{
	if (!is_about(r, verb, proto, a) || __atomic_load_n(&r->used, __ATOMIC_ACQUIRE))
		return false;
	switch (r->by) {
	case ANY_ADDRESS:
		return a->family != AF_UNIX || r->protos & UNIX;
	case BY_NETWORK:
		/* Which link a link-local address is on is the scope's to say. */
		return address_is(a, &r->network, r->prefix) &&
		    (a->scope == r->network.scope || (r->any_scope && !a->scope));
	case BY_NAME:
		return a->family != AF_UNIX && !a->scope && name_standing(r, a) == HOLDS;
	case BY_PATH:
		return a->family == AF_UNIX && a->abstract == r->abstract && (a->abstract ? a->path_length : 1) &&
		    !memchr(a->path + a->abstract, 0, (size_t)(a->path_length - a->abstract)) &&
		    !fnmatch(r->name, a->path + a->abstract, 0);
	}
	return false;
}

/* The rule that decides; NULL if there is none. */
static struct rule *find(struct rules *held, enum verb verb, unsigned proto, const struct address *a)
{
	for (unsigned i = 0; i < held->count; i++)
		if (matches(&held->of[i], verb, proto, a))
			return &held->of[i];
	return NULL;
}

/* The same for a call that is made now: a rule for one use is used up by it. */
static struct rule *take(struct rules *held, enum verb verb, unsigned proto, const struct address *a)
{
	struct rule *r;

	while ((r = find(held, verb, proto, a)) && r->once && !lind_use_once(r->once))
		__atomic_store_n(&r->used, true, __ATOMIC_RELEASE);
	return r;
}

/* A program at a resolver's address could give any answer. */
static bool poses_as_resolver(enum verb verb, const struct address *a)
{
	static const struct address any;
	struct address own = *a;

	if (!has_names || verb != BIND || a->family == AF_UNIX || !a->port)
		return false;
	if (is_resolver(a))
		return true;
	if (memcmp(a->ip, any.ip, sizeof any.ip))
		return false;
	own.family = AF_UNSPEC;
	return is_resolver(&own);
}

/* The first datagram that a socket sends does the same: the kernel chooses its port. Resolvers
 * of libc bind before. Received datagrams are judged elsewhere. */
static bool is_about_to_send(enum verb verb, unsigned proto, const struct address *a)
{
	static const struct address any;

	return verb == BIND && proto == UDP && a->family != AF_UNIX && !a->port &&
	    !memcmp(a->ip, any.ip, sizeof any.ip) && has_datagrams();
}

/* Addresses of datagrams that were let go for once, so that answers come back. */
static struct address answered[16];
static unsigned answered_count;
static pthread_mutex_t answered_lock = PTHREAD_MUTEX_INITIALIZER;

static void let_answer(unsigned proto, const struct address *a)
{
	if (proto == TCP || (a->family != AF_INET && a->family != AF_INET6))
		return;
	pthread_mutex_lock(&answered_lock);
	answered[answered_count++ % (sizeof answered / sizeof *answered)] = *a;
	pthread_mutex_unlock(&answered_lock);
}

static bool may_answer(const struct address *from)
{
	bool may = false;

	pthread_mutex_lock(&answered_lock);
	for (size_t i = 0; i < sizeof answered / sizeof *answered && !may; i++)
		may = answered[i].family == from->family && answered[i].port == from->port &&
		    address_is(from, &answered[i], from->family == AF_INET ? 32 : 128);
	pthread_mutex_unlock(&answered_lock);
	return may;
}

static bool by_default(enum verb verb, unsigned proto, const struct address *a)
{
	return default_allow || is_about_to_send(verb, proto, a) ||
	    (verb & (CONNECT | SEND) && proto & (TCP | UDP) && is_resolver(a));
}

bool allowed(enum verb verb, unsigned proto, const struct address *a)
{
	struct rules *held = rules_hold();
	const struct rule *r = find(held, verb, proto, a);
	bool is = r ? r->allows && !r->redirects : by_default(verb, proto, a);

	rules_release(held);
	return is;
}

static bool has_rule(enum verb verb, unsigned proto, const struct address *a)
{
	struct rules *held = rules_hold();
	bool has = find(held, verb, proto, a);

	rules_release(held);
	return has;
}

bool stays_own(enum verb verb, unsigned proto, const struct address *a)
{
	static const uint8_t any[16], one[16] = { [15] = 1 };
	bool here = a->family == AF_INET ? a->ip[0] == 127 : a->family == AF_INET6 && !memcmp(a->ip, one, sizeof one);
	bool anywhere = verb & (BIND | LISTEN) && a->family != AF_UNIX && !memcmp(a->ip, any, sizeof any);

	if (!own_loopback || !(proto & (TCP | UDP)))
		return false;
	if (a->own)
		return true;
	if (!here && !anywhere)
		return false;
	/* A resolver of the host's is not among them. */
	return !has_rule(verb, proto, a) && !by_default(verb, proto, a);
}

static bool comes_by(struct rules *held, unsigned proto, const struct address *from, const struct address *by_port)
{
	const struct rule *send = find(held, SEND, proto, from), *accept = find(held, ACCEPT, proto, by_port);

	if (from->own || (send && send->allows && !send->redirects))
		return true;
	/* Answers from where what was sent went. */
	for (unsigned i = 0; i < held->count; i++) {
		const struct rule *r = &held->of[i];

		if (r->redirects && r->protos & proto && r->verbs & (SEND | CONNECT) && r->to.port == from->port &&
		    address_is(from, &r->to, from->family == AF_INET ? 32 : 128))
			return true;
	}
	if (accept)
		return accept->allows;
	return !send && (by_default(SEND, proto, from) || may_answer(from));
}

bool may_come(unsigned proto, const struct address *from, const struct address *by_port)
{
	struct rules *held = rules_hold();
	bool may = comes_by(held, proto, from, by_port);

	rules_release(held);
	return may;
}

bool has_datagrams(void)
{
	struct rules *held = rules_hold();
	bool may = default_allow || has_names || rules_have_datagrams(held);

	rules_release(held);
	return may;
}

int64_t deny(
    struct client *c, const struct lind_call *call, const char *subject, const char *rule, const char *format, ...)
{
	char what[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(what, sizeof what, format, ap);
	va_end(ap);
	if (!lind_denied(call->target, call->nr, deny_errno, rule, what, subject))
		lind_log("%llu (%s) %s: %s: %s", (unsigned long long)call->target, c->name, what, rule,
		    lind_errno_name(deny_errno));
	return -deny_errno;
}

/* Denies what the text says, unless somebody allows it first: then 0. */
static int64_t ask(
    struct client *c, const struct lind_call *call, const char *subject, const char *rule, const char *what)
{
	switch (lind_ask(call->target, call->nr, deny_errno, rule, what, subject)) {
	case LIND_ALLOWED:
		return 0;
	case LIND_INTERRUPTED:
		return -EINTR;
	case LIND_UNHEARD:
		lind_log("%llu (%s) %s: %s: %s", (unsigned long long)call->target, c->name, what, rule,
		    lind_errno_name(deny_errno));
	}
	return -deny_errno;
}

int64_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* The next turn of a rule with a rate. A signal of the client ends the wait. */
static int64_t wait_turn(struct rule *r, const struct lind_call *call)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct lind_arg none = { 0, call->target };
	int64_t at = now(), turn;
	struct timespec t;

	pthread_mutex_lock(&lock);
	turn = r->free_at > at ? r->free_at : at;
	r->free_at = turn + (int64_t)(1e9 / r->rate);
	pthread_mutex_unlock(&lock);
	if (turn <= at)
		return 0;
	t = (struct timespec){ .tv_sec = turn / 1000000000, .tv_nsec = (long)(turn % 1000000000) };
	return lind_forward_clock_nanosleep(call, CLOCK_MONOTONIC, TIMER_ABSTIME, &t, none);
}

/* To where the rule says, in the form that the socket knows. */
static void redirect(const struct rule *r, struct address *a)
{
	bool six = a->family == AF_INET6 || a->mapped;

	*a = r->to;
	a->mapped = six && a->family == AF_INET;
}

bool only_asks(enum verb verb, unsigned proto, const struct address *a)
{
	return verb == CONNECT && proto == UDP && a->port == 65535 && !allowed(verb, proto, a);
}

/* A port of this host's own, of the system's choice, at which nobody listens yet: listening is
 * judged separately. Programs test so whether IPv6 works. */
static bool takes_any_port(enum verb verb, unsigned proto, const struct address *a)
{
	static const uint8_t six[16] = { [15] = 1 };
	bool own = a->family == AF_INET ? a->ip[0] == 127 : a->family == AF_INET6 && !memcmp(a->ip, six, sizeof six);

	return verb == BIND && proto == TCP && !a->port && own;
}

/* Whether the rules refuse it. */
static bool refused(const struct rule *r, enum verb verb, unsigned proto, const struct address *a)
{
	if (!r && takes_any_port(verb, proto, a))
		return false;
	return r ? !r->allows : !by_default(verb, proto, a);
}

/* The subject that a rule would have to allow, by the name that a resolver gave the address for,
 * as addresses change. A rule cannot express a unix socket's name with blanks, control
 * characters or others beside ASCII. */
static void subject_of(enum verb verb, const struct address *a, const char *text, char *to, size_t size)
{
	char host[DNS_NAME];
	bool can_be_said = a->path_length > 0;

	for (size_t i = a->abstract; i < a->path_length; i++)
		can_be_said &= a->path[i] > ' ' && a->path[i] <= '~';
	if (a->family == AF_UNIX && !can_be_said)
		*to = 0;
	else if (a->family != AF_UNIX && verb & (CONNECT | SEND) && name_was_asked(a, host, sizeof host))
		snprintf(to, size, "%s:%u%s", host, a->port, address_is_private(a) ? "/private" : "");
	else
		snprintf(to, size, "%s", text);
}

/* Why no rule allows it: one that has the address's name does not hold for it. */
static const char *why_none(struct rules *held, enum verb verb, unsigned proto, const struct address *a)
{
	enum standing nearest = UNKNOWN;

	for (unsigned i = 0; i < held->count; i++)
		if (held->of[i].by == BY_NAME && held->of[i].allows && is_about(&held->of[i], verb, proto, a)) {
			enum standing here = name_standing(&held->of[i], a);

			nearest = here > nearest ? here : nearest;
		}
	return nearest == PRIVATE ? "the name's rule does not reach private addresses"
	    : nearest == EXPIRED  ? "the answer for the name has expired; look it up again"
				  : "no rule allows it";
}

/* By these rules: 0 if it is allowed, or if somebody allows it when asked. */
static int64_t judge_by(struct rules *held, struct client *c, const struct lind_call *call, enum verb verb,
    unsigned proto, struct address *a)
{
	struct rule *r = take(held, verb, proto, a);
	char text[160], subject[DNS_NAME + 16], what[200];
	int64_t waited;

	if (refused(r, verb, proto, a)) {
		address_text(a, text, sizeof text);
		subject_of(verb, a, text, subject, sizeof subject);
		snprintf(what, sizeof what, "%s %s %s", verb_name(verb), proto_name(proto), text);
		if ((waited = ask(c, call, subject, r ? r->text : why_none(held, verb, proto, a), what)) < 0)
			return waited;
		let_answer(proto, a);
		return 0;
	}
	if (r && r->once)
		let_answer(proto, a);
	if (r && r->rate > 0 && (waited = wait_turn(r, call)) < 0)
		return waited;
	if (learns)
		learn_use(verb, proto, a);
	if (r && r->redirects)
		redirect(r, a);
	return 0;
}

int64_t judge(struct client *c, const struct lind_call *call, enum verb verb, unsigned proto, struct address *a)
{
	struct rules *held;
	char text[160];
	int64_t r;

	if (stays_own(verb, proto, a)) {
		a->own = true;
		return 0;
	}
	a->own = false;
	if (poses_as_resolver(verb, a))
		return deny(c, call, "", "a resolver's address", "%s %s %s", verb_name(verb), proto_name(proto),
		    address_text(a, text, sizeof text));
	held = rules_hold();
	r = judge_by(held, c, call, verb, proto, a);
	rules_release(held);
	return r;
}

int64_t judge_sent(struct client *c, const struct lind_call *call, unsigned proto, struct address *a,
    const uint8_t *bytes, size_t length)
{
	char asked[DNS_NAME], what[DNS_NAME + 16];
	int64_t r;

	if (proto == UDP && a->port == DNS_PORT && !allowed(SEND, proto, a) && dns_question(bytes, length, asked)) {
		snprintf(what, sizeof what, "look up %s", asked);
		if ((r = ask(c, call, asked, "no rule allows it", what)) < 0)
			return r;
		let_answer(proto, a);
		return 0;
	}
	return judge(c, call, SEND, proto, a);
}
