/* Allows and denies what clients do with the network. The option parsing, the clients, and which
 * calls are handled. */
#include <errno.h>
#include <lind/grate.h>
#include <lind/rules.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"

static const char *first_name = "";

static struct client *client_new(uint64_t cage, const char *name)
{
	struct client *c = calloc(1, sizeof *c);

	if (!c)
		lind_die("out of memory");
	c->cage = cage;
	snprintf(c->name, sizeof c->name, "%s", name);
	c->since = names_since;
	pthread_mutex_init(&c->lock, NULL);
	return c;
}

static void *start(uint64_t cage)
{
	return client_new(cage, first_name);
}

static void *fork_(void *parent, uint64_t parent_cage, uint64_t cage, int spawned)
{
	struct client *p = parent, *c = client_new(cage, !p ? first_name : spawned ? p->next_name : p->name);

	(void)parent_cage;
	c->below = true;
	return c;
}

static void exec(void *client, uint64_t cage)
{
	struct client *c = client;

	(void)cage;
	if (!c)
		return;
	memcpy(c->name, c->next_name, sizeof c->name);
	c->since = names_since;
	__atomic_store_n(&c->threads, false, __ATOMIC_RELEASE);
	streams_drop(c, -1);
}

static void exit_(void *client, uint64_t cage, int status)
{
	struct client *c = client;

	(void)cage;
	(void)status;
	if (!c)
		return;
	streams_drop(c, -1);
	pthread_mutex_destroy(&c->lock);
	free(c);
}

/* For the names of programs. */
static int64_t on_run(const struct lind_call *call)
{
	struct client *c = lind_client(call->target);

	if (c)
		lind_read_base_name(call->args[call->nr == SYS_execveat], c->next_name, sizeof c->next_name);
	return lind_forward(call);
}

LIND_HANDLE(observes, execve, on_run);
LIND_HANDLE(observes, execveat, on_run);
LIND_HANDLE(observes, spawn, on_run);

static const char *set_errno(const char *value)
{
	int error = lind_errno_named(value);

	if (error)
		deny_errno = error;
	return error ? NULL : "no such errno";
}

static const char *set_default(const char *value)
{
	default_allow = !strcmp(value, "allow");
	return default_allow || !strcmp(value, "deny") ? NULL : "must be allow or deny";
}

static const char *set_loopback(const char *value)
{
	own_loopback = !strcmp(value, "own");
	return own_loopback || !strcmp(value, "host") ? NULL : "must be own or host";
}

LIND_OPTION("a", "allow", "value");
LIND_OPTION("d", "deny", "value");
LIND_OPTION("r", "redirect", "value");
LIND_OPTION("-", "resolver", "value");
LIND_OPTION("-", "default", "value");
LIND_OPTION("-", "loopback", "value");
LIND_OPTION("-", "errno", "value");
LIND_OPTION("-", "config", "toml");
LIND_OPTION("-", "learn", "writes");

static const struct lind_option options[] = {
	{ 'a', "allow", "RULE", "allow VERB,.. [PROTOCOL,..] TARGET [PORT,..] [N/s]; see the README", rule_allow },
	{ 'd', "deny", "RULE", "deny the same; the first rule that matches decides", rule_deny },
	{ 'r', "redirect", "RULE", "redirect connect,.. .. TARGET [PORT,..] -> ADDRESS PORT", rule_redirect },
	{ 0, "resolver", "ADDRESS[:PORT]",
	    "learn names from the answers of this resolver (default: resolvers of /etc/resolv.conf)", resolver_add },
	{ 0, "default", "allow|deny", "allow or deny calls that no rule matches (default: deny)", set_default },
	{ 0, "loopback", "own|host",
	    "use the programs' own 127.0.0.0/8 and ::1, or the host's, where no rule names them", set_loopback },
	{ 0, "errno", "NAME", "return this error for denied calls (default: EACCES)", set_errno },
	{ 0, "config", "FILE", "read rules from a TOML file", rules_load },
	{ 0, "learn", "FILE", "write rules that allow the allowed calls that were made, and no more", set_learn },
	LIND_LIVE_OPTION,
};

static const struct lind_rules living = {
	.name = "net",
	.options = options,
	.count = sizeof options / sizeof *options,
	.begin = rules_begin,
	.settle = rules_settle,
};

static const struct lind_lifecycle lifecycle = {
	.start = start, .fork = fork_, .exec = exec, .exit = exit_, .end = write_learned
};

int main(int argc, char **argv)
{
	lind_options(
	    options, sizeof options / sizeof *options, "Allows and denies programs' use of the network.", &argc, &argv);
	first_name = lind_base_name(argv[1]);
	rules_first();
	resolvers_find();
	hosts_find();
	vet_own();
	messages_choose();
	lind_rules_follow(&living);
	lind_grate_lifecycle(&lifecycle);
	return lind_grate_main(argc, argv);
}
