/* Rules as they are written: VERB,... [PROTOCOL,...] TARGET [PORT,...] [N/s]. */
#include <ctype.h>
#include <errno.h>
#include <lind/config.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
/* The number of a permission for one use. */
#define ONCE "once:"

bool has_names, default_allow, own_loopback;
int deny_errno = EACCES;

/* The rules that apply, and those that are being read. */
static struct rules *current, *building;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct rules *rules_hold(void)
{
	pthread_mutex_lock(&lock);
	current->uses++;
	pthread_mutex_unlock(&lock);
	return current;
}

void rules_release(struct rules *held)
{
	bool last;

	pthread_mutex_lock(&lock);
	last = !--held->uses;
	pthread_mutex_unlock(&lock);
	if (last)
		free(held);
}

const char *rules_begin(void)
{
	building = calloc(1, sizeof *building);
	return building ? NULL : "out of memory";
}

/* The rules of the options, if there are any. */
void rules_first(void)
{
	const char *wrong = building ? NULL : rules_begin();

	if (wrong)
		lind_die("%s", wrong);
	rules_settle(true);
}

const char *rules_settle(bool applies)
{
	struct rules *old = applies ? current : building;

	if (applies) {
		building->uses = 1;
		pthread_mutex_lock(&lock);
		current = building;
		pthread_mutex_unlock(&lock);
		names_follow(current->has_names || learns);
		watch_data(default_allow || current->has_names || learns || rules_have_datagrams(current));
	}
	building = NULL;
	if (old && applies)
		rules_release(old);
	else
		free(old);
	return NULL;
}

bool rules_have_datagrams(const struct rules *set)
{
	bool have = false;

	for (unsigned i = 0; i < set->count; i++)
		have |= set->of[i].allows && set->of[i].protos & (UDP | ICMP);
	return have;
}

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

/* `wrong` is why the text is not an address. */
static const char *set_host(struct rule *r, const char *text, const char *wrong)
{
	const char *slash = strchr(text, '/');
	size_t length = slash ? (size_t)(slash - text) : strlen(text);

	if (!length || (slash && strcmp(slash, "/private")) || strchr(text, ':'))
		return wrong;
	if (isdigit((unsigned char)text[length - 1]))
		return slash ? "/private is for host names; an address is allowed as it is" : wrong;
	r->by = BY_NAME;
	r->private = slash;
	if (length >= DNS_NAME - 1)
		return "is too long";
	for (size_t i = 0; i < length; i++) {
		if (!isalnum((unsigned char)text[i]) && !strchr("-_", text[i]) &&
		    !(text[i] == '.' && i && text[i - 1] != '.') && !(text[i] == '*' && !i && text[1] == '.'))
			return "not an address and not a host name";
		r->name[i] = (char)tolower(text[i]);
	}
	/* `example.org.` is the same name. */
	if (r->name[length - 1] == '.')
		r->name[length - 1] = 0;
	return NULL;
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
	return set_host(r, text, wrong);
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
	if (at < count && !strstr(words[at], "/s") && strncmp(words[at], ONCE, sizeof ONCE - 1) &&
	    (wrong = set_ports(r, words[at++])))
		return wrong;
	if (at < count && strncmp(words[at], ONCE, sizeof ONCE - 1) && (wrong = set_rate(r, words[at++])))
		return wrong;
	if (at < count && !strncmp(words[at], ONCE, sizeof ONCE - 1))
		r->once = strtoull(words[at++] + sizeof ONCE - 1, NULL, 10);
	return at < count ? "has too many words" : NULL;
}

static const char *add(bool allows, const char *kind, const char *text, bool redirects)
{
	char copy[512], *words[12], *save = NULL;
	size_t count = 0, arrow = 0;
	const char *wrong;
	struct rules *more;
	struct rule *r;
	unsigned prefix;

	if (!building && (wrong = rules_begin()))
		return wrong;
	if (building->count == MOST_RULES)
		return "too many rules";
	if (!(more = realloc(building, sizeof *more + (building->count + 1) * sizeof *r)))
		return "out of memory";
	building = more;
	r = &building->of[building->count];
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
	building->has_names |= r->by == BY_NAME;
	building->count++;
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
	struct lind_config *config = lind_config_load(path);
	const char *wrong;

	for (struct lind_config *v = lind_config_first(lind_config_get(config, "resolvers", LIND_CONFIG_ARRAY)); v;
	    v = v->next)
		if ((wrong = resolver_add(lind_config_is(v, LIND_CONFIG_STRING)->string)))
			lind_config_die(v, "%s", wrong);
	/* Their order matters: an array of tables with one key each. */
	for (struct lind_config *v = lind_config_first(lind_config_get(config, "rule", LIND_CONFIG_ARRAY)); v;
	    v = v->next) {
		bool found = false;

		lind_config_is(v, LIND_CONFIG_TABLE);
		for (size_t i = 0; i < COUNT(kinds); i++) {
			const char *text = lind_config_string(v, kinds[i].key, NULL);

			if (!text)
				continue;
			if (found)
				lind_config_die(v, "one of allow, deny and redirect");
			if ((wrong = kinds[i].add(text)))
				lind_config_die(v, "%s: %s", text, wrong);
			found = true;
		}
		if (!found)
			lind_config_die(v, "must have allow, deny or redirect");
	}
	lind_config_no_others(config);
	return NULL;
}

const char *verb_name(enum verb verb)
{
	for (size_t i = 0; i < COUNT(verbs); i++)
		if (verbs[i].bits == verb)
			return verbs[i].name;
	return "?";
}

const char *proto_name(unsigned proto)
{
	for (size_t i = 0; i < COUNT(protos); i++)
		if (protos[i].bits == proto)
			return protos[i].name;
	return "other";
}
