/*
 * --learn: what was allowed and done, as rules that allow it again. Addresses are told by the names
 * that resolvers gave them, for these are others tomorrow.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "net.h"

#define MOST_LEARNED 1024
/* Linux gives such ports to those who ask for any. */
#define FIRST_FREE_PORT 32768
#define RULE            320

bool learns;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static FILE *output;
static char *learned[MOST_LEARNED];
static size_t learned_count;

const char *set_learn(const char *path)
{
	int fd = lind_open_file(path, NULL, O_WRONLY | O_CREAT | O_TRUNC, 0644);

	if (fd < 0 || !(output = fdopen(fd, "w")))
		return strerror(errno);
	/* So that answers of resolvers are looked at. */
	learns = true;
	return NULL;
}

/* An address as a rule has it, without its port. */
static void put_host(char *to, size_t size, const struct address *a)
{
	struct address bare = *a;
	size_t length;

	bare.port = 0;
	address_text(&bare, to, size);
	length = strlen(to);
	if (length > 2 && !strcmp(to + length - 2, ":0"))
		to[length -= 2] = 0;
	if (*to == '[' && to[length - 1] == ']') {
		to[length - 1] = 0;
		memmove(to, to + 1, length - 1);
	}
}

/* A character with a meaning in a rule or in a quoted text is written as `?`. */
static void put_path(char *to, size_t size, const struct address *a)
{
	char text[sizeof a->path + 8];

	address_text(a, text, sizeof text);
	snprintf(to, size, "%s", text);
	for (char *c = to + strlen("unix:"); *c; c++)
		if (strchr(" \"\\*[", *c))
			*c = '?';
}

static void add(const char *rule)
{
	for (size_t i = 0; i < learned_count; i++)
		if (!strcmp(learned[i], rule))
			return;
	if (learned_count < MOST_LEARNED && (learned[learned_count] = strdup(rule)))
		learned_count++;
}

void learn_use(enum verb verb, unsigned proto, const struct address *a)
{
	bool goes_out = a->family != AF_UNIX && verb & (CONNECT | SEND);
	const char *direction = verb & (CONNECT | SEND) ? "out" : "in";
	const char *kind = proto == ICMP ? " icmp" : proto == TCP ? " tcp" : proto == UDP ? " udp" : "";
	char host[DNS_NAME + 8], port[16] = "*", rule[RULE];

	pthread_mutex_lock(&lock);
	if (a->family == AF_UNIX)
		put_path(host, sizeof host, a);
	else if (!goes_out || !name_was_asked(a, host, DNS_NAME))
		put_host(host, sizeof host, a);
	else if (address_is_private(a))
		strcat(host, "/private");
	if (verb & (CONNECT | SEND) ? a->port : a->port && a->port < FIRST_FREE_PORT)
		snprintf(port, sizeof port, "%u", a->port);
	if (a->family == AF_UNIX)
		snprintf(rule, sizeof rule, "%s %s", direction, host);
	else
		snprintf(rule, sizeof rule, "%s%s %s %s", direction, kind, host, port);
	/* Rules for resolvers follow from the names in other rules. */
	if (!(goes_out && is_resolver(a) && names_were_asked()))
		add(rule);
	pthread_mutex_unlock(&lock);
}

void write_learned(int status)
{
	(void)status;
	if (!output)
		return;
	pthread_mutex_lock(&lock);
	fputs("allow = [", output);
	for (size_t i = 0; i < learned_count; i++)
		fprintf(output, "%s\n\t\"%s\"", i ? "," : "", learned[i]);
	fputs("\n]\n", output);
	if (fclose(output))
		lind_log("cannot write the learned rules: %s", strerror(errno));
	output = NULL;
	pthread_mutex_unlock(&lock);
}
