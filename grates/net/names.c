/* Addresses of names, as resolvers tell clients and as /etc/hosts has them. */
#include <ctype.h>
#include <lind/rules.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"

#define MOST_RESOLVERS 16
#define MOST_KNOWN     4096
#define MOST_SECONDS   86400
/* Some times are 0, and a program that has just got an answer needs a moment to connect. */
#define GRACE_SECONDS 5
/* Holds as long as the grate runs. */
#define ALWAYS INT64_MAX

static struct address resolvers[MOST_RESOLVERS];
static unsigned resolver_count;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
/* Addresses that were told last, for rules and denials. When there is no more room, the one that
 * ends first makes it. */
static struct known {
	char name[DNS_NAME];
	struct address address;
	int64_t until;
} *known;
static size_t known_count;

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
	a.port = (uint16_t)port;
	if (is_resolver(&a))
		return NULL;
	if (resolver_count == MOST_RESOLVERS)
		return "too many resolvers";
	resolvers[resolver_count++] = a;
	return NULL;
}

/* Those that clients use, unless some were named. */
void resolvers_find(void)
{
	FILE *f;
	char line[256], text[80];

	if (!(has_names || lind_is_live()) || resolver_count)
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

static unsigned bits_of(const struct address *a)
{
	return a->family == AF_INET ? 32 : 128;
}

static bool is_same(const struct address *a, const struct address *b)
{
	return a->family == b->family && address_is(a, b, bits_of(a));
}

/* Under the lock. */
static void learn(const char *name, const struct address *a, int64_t until)
{
	struct known *to = known;

	if (!known && !(to = known = calloc(MOST_KNOWN, sizeof *known)))
		return;
	for (size_t i = 0; i < known_count; i++) {
		if (is_same(&known[i].address, a) && !strcmp(known[i].name, name)) {
			if (known[i].until < until)
				known[i].until = until;
			return;
		}
		if (known[i].until < to->until)
			to = &known[i];
	}
	if (known_count < MOST_KNOWN)
		to = &known[known_count++];
	to->address = *a;
	to->until = until;
	snprintf(to->name, sizeof to->name, "%s", name);
}

/* The form in which a client that connects there is judged. */
static void one_form(struct address *a)
{
	struct sockaddr_storage s;
	socklen_t length = address_write(a, &s);

	(void)address_parse(&s, length, true, a);
}

/* ADDRESS NAME... */
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
		if (strlen(word) < DNS_NAME && known_count < MOST_KNOWN / 2)
			learn(word, &a, ALWAYS);
	}
}

/* As it is before clients run: what they write into it afterwards allows nothing. */
void hosts_find(void)
{
	char line[1024];
	FILE *f;

	if (!(has_names || lind_is_live()) || !(f = fopen("/etc/hosts", "re")))
		return;
	while (fgets(line, sizeof line, f))
		learn_host(line);
	fclose(f);
}

unsigned names_since;

void names_follow(bool follows)
{
	if (follows && !has_names)
		__atomic_add_fetch(&names_since, 1, __ATOMIC_SEQ_CST);
	__atomic_store_n(&has_names, follows, __ATOMIC_SEQ_CST);
}

void names_learn(const uint8_t *message, size_t length)
{
	struct dns_answer answer;
	int64_t at = now();

	if (!dns_read(message, length, &answer))
		return;
	pthread_mutex_lock(&lock);
	for (unsigned i = 0; i < answer.count; i++) {
		int64_t seconds = answer.of[i].ttl < MOST_SECONDS ? answer.of[i].ttl : MOST_SECONDS;
		struct address a = { .family = answer.of[i].six ? AF_INET6 : AF_INET };

		memcpy(a.ip, answer.of[i].ip, answer.of[i].six ? 16 : 4);
		one_form(&a);
		learn(answer.name, &a, at + (seconds + GRACE_SECONDS) * 1000000000);
	}
	pthread_mutex_unlock(&lock);
}

enum standing name_standing(const struct rule *r, const struct address *a)
{
	bool may_reach = r->private || !address_is_private(a);
	enum standing found = UNKNOWN;
	int64_t at = now();

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < known_count; i++) {
		const struct known *k = &known[i];
		enum standing here = k->until <= at ? EXPIRED : may_reach || k->until == ALWAYS ? HOLDS : PRIVATE;

		if (here > found && is_same(&k->address, a) && dns_matches(r->name, k->name))
			found = here;
	}
	pthread_mutex_unlock(&lock);
	return found;
}

bool name_was_asked(const struct address *a, char *to, size_t size)
{
	const struct known *newest = NULL;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < known_count; i++)
		if (known[i].until != ALWAYS && is_same(&known[i].address, a) &&
		    (!newest || known[i].until > newest->until))
			newest = &known[i];
	if (newest)
		snprintf(to, size, "%s", newest->name);
	pthread_mutex_unlock(&lock);
	return newest;
}

bool names_were_asked(void)
{
	bool were = false;

	pthread_mutex_lock(&lock);
	for (size_t i = 0; i < known_count && !were; i++)
		were = known[i].until != ALWAYS;
	pthread_mutex_unlock(&lock);
	return were;
}
