/*
 * The net grate, between its files. Every address is copied once, made into one form (address.c),
 * judged (rules.c), and the copy is passed on. A call that is not allowed is denied.
 */
#ifndef NET_H
#define NET_H

#include "dns.h"
#include <lind/grate.h>
#include <lind/transfer.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <sys/un.h>

enum verb { CONNECT = 1, SEND = 2, BIND = 4, LISTEN = 8, ACCEPT = 16 };
enum proto { TCP = 1, UDP = 2, ICMP = 4, UNIX = 8 };

/* An address in one form: IPv4 in IPv6 is IPv4, "any" as a destination is this host. */
struct address {
	int family;  /* AF_INET, AF_INET6, AF_UNIX; AF_UNSPEC: none */
	uint8_t ip[16];  /* AF_INET: the first four */
	uint16_t port;
	uint32_t scope;  /* of a link-local address */
	bool mapped;  /* IPv4 that came as IPv6, and goes so */
	bool own;  /* of the runner's own loopback */
	bool abstract;  /* AF_UNIX: a name without a file */
	uint8_t path_length;
	char path[109];  /* with a NUL */
};

struct range {
	uint16_t from, to;
};

#define MOST_RULES  512
#define MOST_RANGES 16

struct rule {
	char text[128];
	bool allows;
	unsigned verbs, protos;
	enum { ANY_ADDRESS, BY_NETWORK, BY_NAME, BY_PATH } by;
	struct address network;
	unsigned prefix;
	bool any_scope;
	char name[256];   /* host or path pattern */
	bool private;   /* a host's addresses in private networks, too */
	bool abstract;
	struct range ports[MOST_RANGES];
	unsigned range_count;  /* 0: all */
	bool redirects;
	struct address to;
	double rate;   /* a second; 0: no limit */
	int64_t free_at;
	uint64_t once; /* a permission for one use; 0: for any number */
	bool used;
};

/* A set of rules. It stays what it is while somebody holds it. */
struct rules {
	unsigned uses, count;
	bool has_names;
	struct rule of[];
};

struct client {
	uint64_t cage;
	char name[48], next_name[48];
	bool threads;   /* had more than one since its program was started */
	bool below;   /* a descendant of another client, whose calls may change its numbers */
	/* For answers over TCP: see streams.c. */
	pthread_mutex_t lock;
	uint64_t changes, changing;
	struct stream *streams;
	uint8_t fresh[128];  /* a bit for each number that socket(2) made and nothing copied */
	/* Since when names are followed, when its program began. */
	unsigned since;
};

/* address.c */
/* Takes a socket address apart. 0 or a negative errno. `out` if it is a destination. A mark of the
 * runner's own loopback is heeded whoever made it: a client that spells it reaches less. */
int64_t address_parse(const void *bytes, size_t length, bool out, struct address *a);
/* Takes the mark off an address that a client is to see. */
void address_unmark(void *bytes, size_t length);
/* As the kernel takes it; its length. */
socklen_t address_write(const struct address *a, struct sockaddr_storage *to);
const char *address_text(const struct address *a, char *text, size_t size);
bool address_is(const struct address *a, const struct address *network, unsigned prefix);
/* A.B.C.D, X:Y::Z, each with /PREFIX. NULL or what is wrong. */
const char *address_of_text(const char *text, struct address *a, unsigned *prefix);
/* private.c: whether it is one of this host, of its networks or of no single host. */
bool address_is_private(const struct address *a);

/* rules.c: the rules as they are written. */
const char *verb_name(enum verb verb);
const char *proto_name(unsigned proto);
/* Those that apply now, until they are released. */
struct rules *rules_hold(void);
void rules_release(struct rules *held);
/* Lets those of the options apply. */
void rules_first(void);
/* Reads others by the functions below, and lets them apply. */
const char *rules_begin(void);
const char *rules_settle(bool applies);
bool rules_have_datagrams(const struct rules *set);
/* Whether answers of resolvers are looked at. */
extern bool has_names;
const char *rule_allow(const char *text);
const char *rule_deny(const char *text);
const char *rule_redirect(const char *text);
const char *rules_load(const char *path);
extern int deny_errno;
extern bool default_allow;
/* Whether programs have a loopback of their own: what no rule is about stays among them. */
extern bool own_loopback;
/* judge.c. Applies the rules to one address of a call: 0, after a wait if there is a rate, or a
 * negative errno, after a line with the reason. A redirection changes the address. */
int64_t judge(struct client *c, const struct lind_call *call, enum verb verb, unsigned proto, struct address *a);
/* Only whether it is allowed. */
bool allowed(enum verb verb, unsigned proto, const struct address *a);
/* Whether an address leads to the runner's own loopback: there is one, and no rule is about the
 * address. */
bool stays_own(enum verb verb, unsigned proto, const struct address *a);
/* Whether what would be refused is how a C library finds out which of its own addresses it would
 * use, before it sorts those of a host: a UDP socket is connected to a port that nobody has, and
 * nothing is sent. It is told that it is, and nobody of a refusal. */
bool only_asks(enum verb verb, unsigned proto, const struct address *a);
/* Whether a datagram from there may be had; `by_port` is its sender with the port it came to. */
bool may_come(unsigned proto, const struct address *from, const struct address *by_port);
/* Whether any datagram may come or go. */
bool has_datagrams(void);
/* Denies by `rule` what the text says. `subject` is what would have to be allowed, or "" where
 * no rule can say that. */
__attribute__((format(printf, 5, 6))) int64_t deny(
    struct client *c, const struct lind_call *call, const char *subject, const char *rule, const char *format, ...);
/* As judge, where datagrams are sent whose first bytes these are: a question to a resolver that
 * is refused is about the name that it asks for. */
#define DNS_PORT 53
int64_t judge_sent(struct client *c, const struct lind_call *call, unsigned proto, struct address *a,
    const uint8_t *bytes, size_t length);

/* learned.c */
extern bool learns;
const char *set_learn(const char *path);
void learn_use(enum verb verb, unsigned proto, const struct address *a);
void write_learned(int status);

/* names.c: addresses of names, from the answers of resolvers and from /etc/hosts. */
const char *resolver_add(const char *text);
void resolvers_find(void);
void hosts_find(void);
bool is_resolver(const struct address *a);
/* The same for any port. */
bool is_resolvers_host(const struct address *a);
/* Whether answers are looked at from now on. A program that runs already has made calls that
 * nobody saw, so its streams are not followed. */
void names_follow(bool follows);
extern unsigned names_since;
/* The answer of a resolver. */
void names_learn(const uint8_t *message, size_t length);
/* The relation of an address to the name of a rule: nobody told it for that name, its time is
 * over, the rule does not reach private addresses, or the rule holds for it. */
enum standing { UNKNOWN, EXPIRED, PRIVATE, HOLDS };
enum standing name_standing(const struct rule *r, const struct address *a);
/* The name for which a resolver gave an address; false if none did. */
bool name_was_asked(const struct address *a, char *to, size_t size);
/* Whether a resolver gave any. */
bool names_were_asked(void);

/* fds.c: what a descriptor is. */
struct socket_kind {
	int domain, type;
	unsigned proto;   /* 0: none that rules know */
};
/* A descriptor of our own for the client's file: whatever its threads do with the number
 * meanwhile, this stays the same file. Calls use it as {pinned, self}. A negative errno if there
 * is none. */
int pin(const struct lind_call *call, struct lind_arg *pinned);
void unpin(struct lind_arg pinned);
/* Until there is something to read or accept, which is what the client would wait for. 0 or a
 * negative errno. */
int64_t wait_readable(const struct lind_call *call, struct lind_arg pinned);
/* Gives the client a descriptor of ours, which is closed here: its number, or a negative errno. */
int64_t hand_over(const struct lind_call *call, int fd, bool cloexec);
bool socket_kind(uint64_t target, struct lind_arg fd, struct socket_kind *kind);
/* The error for a message with an address on a unix stream, whatever the address: EISCONN, or
 * EOPNOTSUPP. 0 for other sockets. */
int64_t stream_takes_no_name(const struct lind_call *call);
bool socket_name(uint64_t target, struct lind_arg fd, bool peer, struct address *a);
/* Whether a socket that came from elsewhere may be had: its peer and its name. */
bool socket_fits(uint64_t target, struct lind_arg fd, char *why, size_t size);
/* The same for a socket that came in a message, and is ours. */
bool received_fits(struct lind_arg fd, char *why, size_t size);
void vet_own(void);

/* datagrams.c */
bool is_datagrams(const struct lind_call *call);
bool datagram_fits(struct client *c, const struct lind_call *call, const struct address *from);
void datagram_drop(const struct lind_call *call);

/* streams.c */
void taint_begin(struct client *c);
void taint_end(struct client *c);
void stream_made(struct client *c, int fd, uint64_t before);
uint64_t stream_quiet(struct client *c);
void stream_connected(struct client *c, int fd, unsigned proto, const struct address *a);
void streams_drop(struct client *c, int fd);
void stream_read(struct client *c, int fd, uint64_t before, const uint8_t *bytes, size_t length);
bool stream_begin(struct client *c, int fd, uint64_t *before);

/* unix.c: a path is judged by where it leads, and the call made on that. */
int64_t unix_connect(struct client *c, const struct lind_call *call, struct lind_arg pinned, struct address *a);
int64_t unix_bind(struct client *c, const struct lind_call *call, struct lind_arg pinned, struct address *a);
/* sendto, or with `m` sendmsg, on `fd`. */
int64_t unix_send(
    struct client *c, const struct lind_call *call, struct lind_arg fd, struct lind_message *m, struct address *a);

/* messages.c: leaves out the calls that nobody needs by these options. */
void messages_choose(void);
/* Whether calls that read data are looked at. */
void watch_data(bool watches);
/* fcntl where answers are followed. */
int64_t names_fcntl(const struct lind_call *call);
int64_t now(void);

#endif
