/*
 * Options of sockets, by what is allowed: those that are about the socket alone. By others packets
 * go elsewhere than their address says, or come from elsewhere, or the host does something for all
 * of its network: joins a group, announces it, keeps a label.
 */
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include "net.h"

LIND_HANDLE(answers, setsockopt);

#define SO_BINDTODEVICE_  25
#define SO_MARK_          36
#define SO_BINDTOIFINDEX_ 62

/* Of a level, up to 128 of them. */
struct allowed {
	int level;
	const uint8_t *options;
	size_t count;
};

#define ALLOWED(level, list) { level, list, sizeof list }

/* SO_REUSEADDR to SO_OOBINLINE, without SO_DONTROUTE; SO_PRIORITY to SO_SNDTIMEO; filters come
 * off; times of packets; queues, pacing, zero copies. */
static const uint8_t of_socket[] = { 2, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 19, 20, 21, 27, 29, 34, 35, 37, 40,
	42, 44, 45, 46, 47, 49, 60, 63, 64, 65, 66, 67, 69, 70, 72, 74 };
/* TOS, TTL, data about received packets, path MTU, errors; IP_MULTICAST_IF, TTL and LOOP;
 * leaving a group; of which groups; ports. */
static const uint8_t of_ip[] = { 1, 2, 6, 7, 8, 10, 11, 12, 13, 14, 20, 21, 23, 24, 25, 26, 32, 33, 34, 36, 40, 45, 47,
	49, 51 };
/* The same of IPv6. */
static const uint8_t of_ipv6[] = { 2, 8, 16, 17, 18, 19, 21, 23, 24, 25, 26, 28, 29, 31, 33, 45, 47, 49, 51, 53, 56, 58,
	60, 61, 62, 66, 67, 70, 72, 73, 74, 77 };
/* All but TCP_MD5SIG, TCP_REPAIR and what belongs to it, and protocols above. */
static const uint8_t of_tcp[] = { 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 16, 17, 18, 23, 24, 25, 27, 30, 34, 36, 37 };
/* UDP_CORK, checksums, UDP_SEGMENT, UDP_GRO. */
static const uint8_t of_udp[] = { 1, 101, 102, 103, 104 };

static const struct allowed levels[] = {
	ALLOWED(SOL_SOCKET, of_socket),
	ALLOWED(IPPROTO_IP, of_ip),
	ALLOWED(IPPROTO_IPV6, of_ipv6),
	ALLOWED(IPPROTO_TCP, of_tcp),
	ALLOWED(IPPROTO_UDP, of_udp),
};

static bool is_allowed(int level, int option)
{
	for (size_t i = 0; i < sizeof levels / sizeof *levels; i++)
		if (levels[i].level == level)
			return option >= 0 && option < 256 && memchr(levels[i].options, option, levels[i].count);
	return false;
}

/* The name of one that is known and not allowed, for the line about it. */
static const char *name_of(int level, int option)
{
	static const struct {
		int level, option;
		const char *name;
	} known[] = {
		{ SOL_SOCKET, 5, "SO_DONTROUTE" },
		{ SOL_SOCKET, SO_BINDTODEVICE_, "SO_BINDTODEVICE" },
		{ SOL_SOCKET, SO_BINDTOIFINDEX_, "SO_BINDTOIFINDEX" },
		{ SOL_SOCKET, SO_MARK_, "SO_MARK" },
		{ IPPROTO_IP, 3, "IP_HDRINCL" },
		{ IPPROTO_IP, 4, "IP_OPTIONS" },
		{ IPPROTO_IP, 5, "IP_ROUTER_ALERT" },
		{ IPPROTO_IP, 15, "IP_FREEBIND" },
		{ IPPROTO_IP, 19, "IP_TRANSPARENT" },
		{ IPPROTO_IP, 39, "IP_ADD_SOURCE_MEMBERSHIP" },
		{ IPPROTO_IP, 41, "IP_MSFILTER" },
		{ IPPROTO_IP, 42, "MCAST_JOIN_GROUP" },
		{ IPPROTO_IP, 46, "MCAST_JOIN_SOURCE_GROUP" },
		{ IPPROTO_IP, 48, "MCAST_MSFILTER" },
		{ IPPROTO_IP, 50, "IP_UNICAST_IF" },
		{ IPPROTO_IPV6, 3, "IPV6_HOPOPTS" },
		{ IPPROTO_IPV6, 4, "IPV6_DSTOPTS" },
		{ IPPROTO_IPV6, 5, "IPV6_RTHDR" },
		{ IPPROTO_IPV6, 6, "IPV6_PKTOPTIONS" },
		{ IPPROTO_IPV6, 9, "IPV6_NEXTHOP" },
		{ IPPROTO_IPV6, 22, "IPV6_ROUTER_ALERT" },
		{ IPPROTO_IPV6, 27, "IPV6_JOIN_ANYCAST" },
		{ IPPROTO_IPV6, 32, "IPV6_FLOWLABEL_MGR" },
		{ IPPROTO_IPV6, 36, "IPV6_HDRINCL" },
		{ IPPROTO_IPV6, 42, "MCAST_JOIN_GROUP" },
		{ IPPROTO_IPV6, 46, "MCAST_JOIN_SOURCE_GROUP" },
		{ IPPROTO_IPV6, 48, "MCAST_MSFILTER" },
		{ IPPROTO_IPV6, 50, "IPV6_PKTINFO" },
		{ IPPROTO_IPV6, 54, "IPV6_HOPOPTS" },
		{ IPPROTO_IPV6, 55, "IPV6_RTHDRDSTOPTS" },
		{ IPPROTO_IPV6, 57, "IPV6_RTHDR" },
		{ IPPROTO_IPV6, 59, "IPV6_DSTOPTS" },
		{ IPPROTO_IPV6, 75, "IPV6_TRANSPARENT" },
		{ IPPROTO_IPV6, 76, "IPV6_UNICAST_IF" },
		{ IPPROTO_IPV6, 78, "IPV6_FREEBIND" },
		{ IPPROTO_TCP, 14, "TCP_MD5SIG" },
		{ IPPROTO_TCP, 19, "TCP_REPAIR" },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].level == level && known[i].option == option)
			return known[i].name;
	return NULL;
}

/* The port that the socket has, to which what is sent to the group would come. */
static uint16_t own_port(const struct lind_call *call)
{
	struct sockaddr_storage name = { 0 };
	uint32_t size = sizeof name;
	struct address own;

	if (lind_forward_getsockname(call, (int)call->args[0].value, lind_mine(&name), lind_mine(&size)) < 0 ||
	    address_parse(&name, size, false, &own) < 0)
		return 0;
	return own.port;
}

/*
 * IP_ADD_MEMBERSHIP and IPV6_JOIN_GROUP: allowed where the socket could be bound to the group. The
 * value is a struct ip_mreq, ip_mreqn or ipv6_mreq, which begin with the group.
 */
static int64_t join(
    struct client *c, const struct lind_call *call, int fd, int level, int option, struct lind_arg at, size_t length)
{
	bool six = level == IPPROTO_IPV6;
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };
	uint8_t value[20] = { 0 };
	struct address group;
	int64_t r;

	if (length < (six ? 20 : 8))
		return -EINVAL;
	length = length < sizeof value ? length : sizeof value;
	if ((r = lind_read(at, value, length)) < 0)
		return r;
	memcpy(&in.sin_addr, value, 4);
	memcpy(&in6.sin6_addr, value, 16);
	r = six ? address_parse(&in6, sizeof in6, false, &group) : address_parse(&in, sizeof in, false, &group);
	if (r < 0)
		return r;
	group.port = own_port(call);
	if ((r = judge(c, call, BIND, UDP, &group)) < 0)
		return r;
	return lind_forward_setsockopt(call, fd, level, option, lind_mine(value), length);
}

static int64_t on_setsockopt(
    const struct lind_call *call, int fd, int level, int option, struct lind_arg value, size_t length)
{
	struct client *c = lind_client(call->target);
	const char *name;

	if (!c)
		return -EACCES;
	if (is_allowed(level, option))
		return lind_forward(call);
	if ((level == IPPROTO_IP && option == 35) || (level == IPPROTO_IPV6 && option == 20))
		return join(c, call, fd, level, option, value, length);
	if ((name = name_of(level, option)))
		return deny(c, call, "", "changes the route of packets", "setsockopt %s", name);
	return -ENOPROTOOPT;
}
