/*
 * Rules: VERB,... [PROTOCOL,...] TARGET [PORT,...] [N/s]. The first that matches decides; without
 * one it is no.
 */
#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <lind/syscall_table.h>
#include <lind/toml.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "net.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

struct rule rules[MOST_RULES];
unsigned rule_count;
bool has_names, default_allow, own_loopback;
int deny_errno = EACCES;

static const struct word {
	const char *name;
	unsigned bits;
} verbs[] = {
	{ "connect", CONNECT }, { "send", SEND }, { "bind", BIND }, { "listen", LISTEN }, { "accept", ACCEPT },
	{ "out", CONNECT | SEND }, { "in", BIND | LISTEN | ACCEPT }, { "any", 31 },
}, protos[] = {
	{ "tcp", TCP }, { "udp", UDP }, { "icmp", ICMP }, { "unix", UNIX },
};

/* A list of words; 0 if there is another among them. */
static unsigned bits_of(const char *text, const struct word *words, size_t count)
{
	char copy[64], *save = NULL;
	unsigned bits = 0;

	if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
		return 0;
	for (char *word = strtok_r(copy, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		unsigned bit = 0;

		for (size_t i = 0; i < count; i++)
			bit |= strcmp(words[i].name, word) ? 0 : words[i].bits;
		if (!bit)
			return 0;
		bits |= bit;
	}
	return bits;
}

static const char *set_ports(struct rule *r, char *text)
{
	char *save = NULL;

	if (!strcmp(text, "*"))
		return NULL;
	for (char *word = strtok_r(text, ",", &save); word; word = strtok_r(NULL, ",", &save)) {
		char *end;
		unsigned long from = strtoul(word, &end, 10), to = from;

		if (isdigit((unsigned char)*word) && *end == '-' && isdigit((unsigned char)end[1]))
			to = strtoul(end + 1, &end, 10);
		if (!isdigit((unsigned char)*word) || *end || from > to || to > 65535)
			return "ports are numbers and ranges up to 65535, such as 80,8000-8100, or *";
		if (r->range_count == MOST_RANGES)
			return "too many ranges of ports";
		r->ports[r->range_count++] = (struct range){ (uint16_t)from, (uint16_t)to };
	}
	return r->range_count ? NULL : "no ports";
}

static const char *set_target(struct rule *r, const char *text)
{
	const char *wrong = address_of_text(text, &r->network, &r->prefix);

	if (!strcmp(text, "*"))
		return NULL;
	if (!strncmp(text, "unix:", 5)) {
		r->by = BY_PATH;
		r->protos = UNIX;
		r->abstract = text[5] == '@';
		if (text[5] != '@' && text[5] != '/' && text[5] != '*')
			return "a path must begin with /, and a name without a file with @";
		return snprintf(r->name, sizeof r->name, "%s", text + 5 + r->abstract) >= (int)sizeof r->name
		    ? "is too long"
		    : NULL;
	}
	if (!wrong) {
		r->by = BY_NETWORK;
		r->any_scope = !r->network.scope;
		return NULL;
	}
	if (strchr(text, '/') || strchr(text, ':') || isdigit((unsigned char)text[strlen(text) - 1]))
		return wrong;
	r->by = BY_NAME;
	has_names = true;
	if (strlen(text) >= DNS_NAME - 1)
		return "is too long";
	for (size_t i = 0; text[i]; i++) {
		if (!isalnum((unsigned char)text[i]) && !strchr("-_", text[i]) &&
		    !(text[i] == '.' && i && text[i - 1] != '.') && !(text[i] == '*' && !i && text[1] == '.'))
			return "not an address and not a host name";
		r->name[i] = (char)tolower(text[i]);
	}
	/* `example.org.` is the same name. */
	if (r->name[strlen(r->name) - 1] == '.')
		r->name[strlen(r->name) - 1] = 0;
	return NULL;
}

static const char *set_rate(struct rule *r, const char *text)
{
	char *end;

	r->rate = strtod(text, &end);
	return end == text || strcmp(end, "/s") || !(r->rate > 0 && r->rate < 1e6) ? "a rate is N/s" : NULL;
}

/* The words of a rule up to `->`. */
static const char *parse(struct rule *r, char **words, size_t count)
{
	const char *wrong;
	size_t at = 0;

	if (count < 2)
		return "must be VERB,... [PROTOCOL,...] TARGET [PORT,...] [N/s]";
	if (!(r->verbs = bits_of(words[at++], verbs, COUNT(verbs))))
		return "verbs are connect, send, bind, listen, accept, out, in, any";
	if ((r->protos = bits_of(words[at], protos, COUNT(protos))))
		at++;
	else
		r->protos = TCP | UDP;
	if (at == count)
		return "no target: an address, a network, a host name, unix:PATH or *";
	if ((wrong = set_target(r, words[at++])))
		return wrong;
	if (r->by == BY_NAME && r->verbs & ~(unsigned)(CONNECT | SEND) && r->verbs != 31)
		return "host names are for connect and send";
	if (at < count && !strstr(words[at], "/s") && (wrong = set_ports(r, words[at++])))
		return wrong;
	if (at < count && (wrong = set_rate(r, words[at++])))
		return wrong;
	return at < count ? "has too many words" : NULL;
}

static const char *add(bool allows, const char *kind, const char *text, bool redirects)
{
	char copy[512], *words[12], *save = NULL;
	size_t count = 0, arrow = 0;
	const char *wrong;
	struct rule *r = &rules[rule_count];
	unsigned prefix;

	if (rule_count == MOST_RULES)
		return "too many rules";
	if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
		return "is too long";
	*r = (struct rule){ .allows = allows, .redirects = redirects };
	snprintf(r->text, sizeof r->text, "%s %s", kind, text);
	for (char *word = strtok_r(copy, " \t", &save); word; word = strtok_r(NULL, " \t", &save)) {
		if (count == COUNT(words))
			return "has too many words";
		if (!strcmp(word, "->"))
			arrow = count;
		words[count++] = word;
	}
	if (redirects) {
		if (!arrow || count != arrow + 3)
			return "must be VERB,... [PROTOCOL,...] TARGET [PORT,...] -> ADDRESS PORT";
		if ((wrong = address_of_text(words[arrow + 1], &r->to, &prefix)) || (prefix != 32 && prefix != 128))
			return wrong ? wrong : "must redirect to one address";
		r->to.port = (uint16_t)atoi(words[arrow + 2]);
		if (!r->to.port || strlen(words[arrow + 2]) > 5)
			return "must redirect to one port";
		count = arrow;
	}
	if ((wrong = parse(r, words, count)))
		return wrong;
	if (redirects && (r->by == BY_PATH || r->verbs & ~(unsigned)(CONNECT | SEND)))
		return "only connect and send to addresses can be redirected";
	rule_count++;
	return NULL;
}

const char *rule_allow(const char *text)
{
	return add(true, "allow", text, false);
}

const char *rule_deny(const char *text)
{
	return add(false, "deny", text, false);
}

const char *rule_redirect(const char *text)
{
	return add(true, "redirect", text, true);
}

const char *rules_load(const char *path)
{
	static const struct {
		const char *key;
		const char *(*add)(const char *);
	} kinds[] = {
		{ "allow", rule_allow },
		{ "deny", rule_deny },
		{ "redirect", rule_redirect },
	};
	struct lind_toml *config = lind_toml_load(path);
	const char *wrong;

	for (struct lind_toml *v = lind_toml_first(lind_toml_get(config, "resolvers", LIND_TOML_ARRAY)); v; v = v->next)
		if ((wrong = resolver_add(lind_toml_is(v, LIND_TOML_STRING)->string)))
			lind_toml_die(v, "%s", wrong);
	/* Their order matters: an array of tables with one key each. */
	for (struct lind_toml *v = lind_toml_first(lind_toml_get(config, "rule", LIND_TOML_ARRAY)); v; v = v->next) {
		bool found = false;

		lind_toml_is(v, LIND_TOML_TABLE);
		for (size_t i = 0; i < COUNT(kinds); i++) {
			const char *text = lind_toml_string(v, kinds[i].key, NULL);

			if (!text)
				continue;
			if (found)
				lind_toml_die(v, "one of allow, deny and redirect");
			if ((wrong = kinds[i].add(text)))
				lind_toml_die(v, "%s: %s", text, wrong);
			found = true;
		}
		if (!found)
			lind_toml_die(v, "must have allow, deny or redirect");
	}
	lind_toml_no_others(config);
	return NULL;
}

static const char *verb_name(enum verb verb)
{
	for (size_t i = 0; i < COUNT(verbs); i++)
		if (verbs[i].bits == verb)
			return verbs[i].name;
	return "?";
}

static const char *proto_name(unsigned proto)
{
	for (size_t i = 0; i < COUNT(protos); i++)
		if (protos[i].bits == proto)
			return protos[i].name;
	return "other";
}

static const char *error_name(int error)
{
	for (size_t i = 0; i < COUNT(lind_errnos); i++)
		if (lind_errnos[i].number == error)
			return lind_errnos[i].name;
	return "?";
}

static bool matches(const struct rule *r, enum verb verb, unsigned proto, const struct address *a)
{
	bool port = !r->range_count || a->family == AF_UNIX;

	if (!(r->verbs & verb) || !(r->protos & proto))
		return false;
	for (unsigned i = 0; i < r->range_count; i++)
		port |= a->port >= r->ports[i].from && a->port <= r->ports[i].to;
	if (!port)
		return false;
	switch (r->by) {
	case ANY_ADDRESS:
		return a->family != AF_UNIX || r->protos & UNIX;
	case BY_NETWORK:
		/* Which link a link-local address is on is the scope's to say. */
		return address_is(a, &r->network, r->prefix) &&
		    (a->scope == r->network.scope || (r->any_scope && !a->scope));
	case BY_NAME:
		return a->family != AF_UNIX && !a->scope && name_has(r, a);
	case BY_PATH:
		return a->family == AF_UNIX && a->abstract == r->abstract && (a->abstract ? a->path_length : 1) &&
		    !memchr(a->path + a->abstract, 0, (size_t)(a->path_length - a->abstract)) &&
		    !fnmatch(r->name, a->path + a->abstract, 0);
	}
	return false;
}

/* The rule that decides; NULL if there is none. */
static struct rule *find(enum verb verb, unsigned proto, const struct address *a)
{
	for (unsigned i = 0; i < rule_count; i++)
		if (matches(&rules[i], verb, proto, a))
			return &rules[i];
	return NULL;
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

static bool by_default(enum verb verb, unsigned proto, const struct address *a)
{
	return default_allow || is_about_to_send(verb, proto, a) ||
	    (verb & (CONNECT | SEND) && proto & (TCP | UDP) && is_resolver(a));
}

bool allowed(enum verb verb, unsigned proto, const struct address *a)
{
	const struct rule *r = find(verb, proto, a);

	return r ? r->allows && !r->redirects : by_default(verb, proto, a);
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
	return !find(verb, proto, a) && !by_default(verb, proto, a);
}

bool may_come(unsigned proto, const struct address *from, const struct address *by_port)
{
	const struct rule *send = find(SEND, proto, from), *accept = find(ACCEPT, proto, by_port);

	if (from->own || (send && send->allows && !send->redirects))
		return true;
	/* Answers from where what was sent went. */
	for (unsigned i = 0; i < rule_count; i++)
		if (rules[i].redirects && rules[i].protos & proto && rules[i].verbs & (SEND | CONNECT) &&
		    rules[i].to.port == from->port &&
		    address_is(from, &rules[i].to, from->family == AF_INET ? 32 : 128))
			return true;
	if (accept)
		return accept->allows;
	return !send && by_default(SEND, proto, from);
}

bool has_datagrams(void)
{
	bool may = default_allow || has_names;

	for (unsigned i = 0; i < rule_count; i++)
		may |= rules[i].allows && rules[i].protos & (UDP | ICMP);
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
		    error_name(deny_errno));
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
	return lind_call(SYS_clock_nanosleep, call->target, (struct lind_arg){ CLOCK_MONOTONIC, call->target },
	    (struct lind_arg){ TIMER_ABSTIME, call->target }, lind_mine(&t), none, none, none);
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
		snprintf(to, size, "%s:%u", host, a->port);
	else
		snprintf(to, size, "%s", text);
}

int64_t judge(struct client *c, const struct lind_call *call, enum verb verb, unsigned proto, struct address *a)
{
	struct rule *r = find(verb, proto, a);
	char text[160], subject[DNS_NAME + 8];

	if (stays_own(verb, proto, a)) {
		a->own = true;
		return 0;
	}
	a->own = false;
	if (poses_as_resolver(verb, a))
		return deny(c, call, "", "a resolver's address", "%s %s %s", verb_name(verb), proto_name(proto),
		    address_text(a, text, sizeof text));
	if (refused(r, verb, proto, a)) {
		address_text(a, text, sizeof text);
		subject_of(verb, a, text, subject, sizeof subject);
		return deny(c, call, subject, r ? r->text : "no rule allows it", "%s %s %s", verb_name(verb),
		    proto_name(proto), text);
	}
	if (r && r->rate > 0) {
		int64_t waited = wait_turn(r, call);

		if (waited < 0)
			return waited;
	}
	if (learns)
		learn_use(verb, proto, a);
	if (r && r->redirects)
		redirect(r, a);
	return 0;
}

int64_t judge_sent(struct client *c, const struct lind_call *call, unsigned proto, struct address *a,
    const uint8_t *bytes, size_t length)
{
	char asked[DNS_NAME];

	if (proto == UDP && a->port == DNS_PORT && refused(find(SEND, proto, a), SEND, proto, a) &&
	    dns_question(bytes, length, asked))
		return deny(c, call, asked, "no rule allows it", "look up %s", asked);
	return judge(c, call, SEND, proto, a);
}
