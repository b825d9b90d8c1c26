/* Addresses of names that rules have, as resolvers tell clients. Bounded: of a rule's the one
 * that ends first makes room. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"

#define MOST_RESOLVERS 16
#define MOST_ADDRESSES 256
/* Programs use an address for longer than its time says, and some times are 0. */
#define LEAST_SECONDS 60
#define MOST_SECONDS  86400

static struct address resolvers[MOST_RESOLVERS];
static unsigned resolver_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct known {
	const struct rule *rule;
	struct address address;
	int64_t until;
} known[MOST_RULES * 4 > MOST_ADDRESSES ? MOST_RULES * 4 : MOST_ADDRESSES];

/* ADDRESS, ADDRESS:PORT, [ADDRESS]:PORT */
const char *resolver_add(const char *text)
{
	char copy[80], *colon;
	unsigned prefix;
	struct address a;
	const char *wrong;
	long port = 53;

	if (snprintf(copy, sizeof copy, "%s", *text == '[' ? text + 1 : text) >= (int)sizeof copy)
		return "not an address";
	if (*text == '[' && (colon = strstr(copy, "]:"))) {
		*colon = 0;
		port = atol(colon + 2);
	} else if ((colon = strchr(copy, ':')) && !strchr(colon + 1, ':')) {
		*colon = 0;
		port = atol(colon + 1);
	}
	if ((wrong = address_of_text(copy, &a, &prefix)))
		return wrong;
	if ((prefix != 32 && prefix != 128) || port < 1 || port > 65535)
		return "must be ADDRESS, ADDRESS:PORT or [ADDRESS]:PORT";
	if (resolver_count == MOST_RESOLVERS)
		return "too many resolvers";
	a.port = (uint16_t)port;
	resolvers[resolver_count++] = a;
	return NULL;
}

/* Those that clients use, unless some were named. */
void resolvers_find(void)
{
	FILE *f;
	char line[256], text[80];

	if (!has_names || resolver_count)
		return;
	if ((f = fopen("/etc/resolv.conf", "re"))) {
		while (fgets(line, sizeof line, f))
			if (sscanf(line, " nameserver %79s", text) == 1)
				(void)resolver_add(text);
		fclose(f);
	}
	if (!resolver_count)
		(void)resolver_add("127.0.0.1");
}

/* An address without a family stands for any. */
bool is_resolver(const struct address *a)
{
	for (unsigned i = 0; i < resolver_count; i++)
		if (a->port == resolvers[i].port &&
		    (a->family == AF_UNSPEC || address_is(a, &resolvers[i], a->family == AF_INET ? 32 : 128)))
			return true;
	return false;
}

bool is_resolvers_host(const struct address *a)
{
	for (unsigned i = 0; i < resolver_count; i++)
		if (address_is(a, &resolvers[i], a->family == AF_INET ? 32 : 128))
			return true;
	return false;
}

static void learn(const struct rule *r, const struct address *a, int64_t until)
{
	struct known *to = known;

	for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
		if (known[i].rule == r && address_is(&known[i].address, a, a->family == AF_INET ? 32 : 128)) {
			if (known[i].until < until)
				known[i].until = until;
			return;
		}
		if (known[i].until < to->until)
			to = &known[i];
	}
	*to = (struct known){ r, *a, until };
}

/* The same forms as those of clients. */
static void one_form(struct address *a)
{
	struct sockaddr_in6 six = { .sin6_family = AF_INET6 };

	if (a->family != AF_INET6)
		return;
	memcpy(&six.sin6_addr, a->ip, 16);
	(void)address_parse(&six, sizeof six, false, a);
}

/* ADDRESS NAME...: holds as long as the grate runs. */
static void learn_host(char *line)
{
	char *save = NULL, *word;
	struct address a;
	unsigned prefix;

	line[strcspn(line, "#\n")] = 0;
	if (!(word = strtok_r(line, " \t\r", &save)) || address_of_text(word, &a, &prefix) ||
	    (prefix != 32 && prefix != 128) || a.scope)
		return;
	one_form(&a);
	while ((word = strtok_r(NULL, " \t\r", &save))) {
		for (char *p = word; *p; p++)
			*p = (char)tolower((unsigned char)*p);
		for (unsigned i = 0; i < rule_count; i++)
			if (rules[i].by == BY_NAME && dns_matches(rules[i].name, word))
				learn(&rules[i], &a, INT64_MAX);
	}
}

/* As it is before clients run: what they write into it afterwards allows nothing. */
void hosts_find(void)
{
	char line[1024];
	FILE *f;

	if (!has_names || !(f = fopen("/etc/hosts", "re")))
		return;
	while (fgets(line, sizeof line, f))
		learn_host(line);
	fclose(f);
}

void names_learn(const uint8_t *message, size_t length)
{
	struct dns_answer answer;
	int64_t at = now();

	if (!dns_read(message, length, &answer))
		return;
	for (unsigned j = 0; j < answer.count; j++) {
		struct address a = { .family = answer.of[j].six ? AF_INET6 : AF_INET };

		memcpy(a.ip, answer.of[j].ip, answer.of[j].six ? 16 : 4);
		one_form(&a);
		learn_name(answer.name, &a);
	}
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < rule_count; i++) {
		if (rules[i].by != BY_NAME || !dns_matches(rules[i].name, answer.name))
			continue;
		for (unsigned j = 0; j < answer.count; j++) {
			int64_t seconds = answer.of[j].ttl < LEAST_SECONDS ? LEAST_SECONDS
			    : answer.of[j].ttl > MOST_SECONDS              ? MOST_SECONDS
									   : answer.of[j].ttl;
			struct address a = { .family = answer.of[j].six ? AF_INET6 : AF_INET };

			memcpy(a.ip, answer.of[j].ip, answer.of[j].six ? 16 : 4);
			one_form(&a);
			learn(&rules[i], &a, at + seconds * 1000000000);
		}
	}
	pthread_mutex_unlock(&lock);
}

bool name_has(const struct rule *r, const struct address *a)
{
	bool has = false;
	int64_t at = now();

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < sizeof known / sizeof *known && !has; i++)
		has = known[i].rule == r && known[i].until > at &&
		    address_is(&known[i].address, a, a->family == AF_INET ? 32 : 128);
	pthread_mutex_unlock(&lock);
	return has;
}
