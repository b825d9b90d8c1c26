/* Sockets by address: connect, bind, sendto. A socket is inside from the first of its addresses
 * that matches. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include "fds.h"
#include "hold.h"
#include "kinds.h"
#include "net.h"
#include "sent.h"
#include "where.h"

#define RULES     64
#define NAME_ROOM 128

static struct {
	uint8_t bytes[16];
	unsigned bits;
} addresses[RULES];
static struct {
	uint16_t first, last;
} ports[RULES];
static size_t address_count, port_count;

static bool parse_port(const char *from, char **end, uint16_t *port)
{
	unsigned long n = strtoul(from, end, 10);

	*port = (uint16_t)n;
	return *end != from && *from != '-' && n <= UINT16_MAX;
}

const char *add_port(const char *value)
{
	uint16_t first, last;
	char *end;

	if (!parse_port(value, &end, &first))
		return "must be a port or two with - between them";
	last = first;
	if (*end == '-' && !parse_port(end + 1, &end, &last))
		return "must be a port or two with - between them";
	if (*end || last < first)
		return "must be a port or two with - between them";
	if (port_count == RULES)
		return "too many of them";
	ports[port_count].first = first;
	ports[port_count++].last = last;
	by_net = true;
	return NULL;
}

/* IPv4 as the IPv6 addresses that stand for them. */
static void mapped(uint8_t bytes[16], const void *v4)
{
	memset(bytes, 0, 10);
	bytes[10] = bytes[11] = 0xff;
	memcpy(bytes + 12, v4, 4);
}

const char *add_address(const char *value)
{
	char text[64], *slash, *end;
	uint8_t v4[4];
	unsigned most = 128, bits;

	if (strlen(value) >= sizeof text || address_count == RULES)
		return "too long, or too many of them";
	strcpy(text, value);
	if ((slash = strchr(text, '/')))
		*slash = 0;
	if (inet_pton(AF_INET, text, v4) == 1) {
		mapped(addresses[address_count].bytes, v4);
		most = 32;
	} else if (inet_pton(AF_INET6, text, addresses[address_count].bytes) != 1)
		return "must be an IPv4 or IPv6 address, with / and a number of bits or without";
	bits = most;
	if (slash) {
		bits = (unsigned)strtoul(slash + 1, &end, 10);
		if (end == slash + 1 || *end || bits > most)
			return "must have a number of bits after the /";
	}
	addresses[address_count++].bits = bits + 128 - most;
	by_net = true;
	return NULL;
}

static bool same_bits(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	unsigned whole = bits / 8, rest = bits % 8;

	return !memcmp(a, b, whole) && (!rest || !((a[whole] ^ b[whole]) >> (8 - rest)));
}

static bool matches_address(const void *name, size_t length)
{
	const struct sockaddr *sa = name;
	uint8_t bytes[16];
	uint16_t port;
	bool matches = !address_count;

	if (length >= sizeof(struct sockaddr_in) && sa->sa_family == AF_INET) {
		const struct sockaddr_in *in = name;

		mapped(bytes, &in->sin_addr);
		port = ntohs(in->sin_port);
	} else if (length >= offsetof(struct sockaddr_in6, sin6_scope_id) && sa->sa_family == AF_INET6) {
		const struct sockaddr_in6 *in6 = name;

		memcpy(bytes, &in6->sin6_addr, sizeof bytes);
		port = ntohs(in6->sin6_port);
	} else
		return false;
	for (size_t i = 0; i < address_count && !matches; i++)
		matches = same_bits(bytes, addresses[i].bytes, addresses[i].bits);
	if (!matches || !port_count)
		return matches;
	for (size_t i = 0; i < port_count; i++)
		if (port >= ports[i].first && port <= ports[i].last)
			return true;
	return false;
}

/* A unix socket's path. Where it is below a prefix the name becomes what it leads to. 1 if it
 * is, 0, or the negative of an errno. */
static int unix_name(const struct lind_call *c, struct sockaddr_un *un, uint64_t *length, size_t room)
{
	size_t most = *length - offsetof(struct sockaddr_un, sun_path), end = strnlen(un->sun_path, most);
	struct where w = { .start_only = false };
	int r;

	if (!end)
		return 0;
	memcpy(w.text, un->sun_path, end);
	if ((r = look_at(c, -1, c->nr != SYS_bind, &w)))
		return r;
	if (!w.rewritten)
		return w.inside;
	if ((end = strlen(w.text)) >= sizeof un->sun_path || offsetof(struct sockaddr_un, sun_path) + end >= room)
		return -ENAMETOOLONG;
	strcpy(un->sun_path, w.text);
	*length = offsetof(struct sockaddr_un, sun_path) + end + 1;
	return w.inside;
}

/* Whether a name matches, as above. `name` is our copy. */
int socket_name(const struct lind_call *c, void *name, uint64_t *length, size_t room)
{
	const struct sockaddr *sa = name;

	if (by_path && *length > offsetof(struct sockaddr_un, sun_path) && sa->sa_family == AF_UNIX)
		return unix_name(c, name, length, room);
	return by_net && matches_address(name, (size_t)*length);
}

/* connect, bind, sendto: the address is read once and goes on from our memory. */
int64_t on_address(const struct lind_call *c)
{
	int at = c->nr == SYS_sendto ? 4 : 1, r;
	uint64_t length = c->args[at + 1].value;
	struct lind_call changed = *c;
	_Alignas(8) uint8_t name[NAME_ROOM];

	if (!c->args[at].value || !length || length > sizeof name)
		return on_fd(c);
	if ((r = lind_read(c->args[at], name, (size_t)length)) || (r = socket_name(c, name, &length, sizeof name)) < 0)
		return r;
	if (r)
		adopt(c, 0);
	changed.args[at] = lind_mine(name);
	changed.args[at + 1].value = length;
	return fd_inside(c->args[0]) ? enter(&changed) : go_past(&changed, 1);
}
