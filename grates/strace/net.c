/* Arguments of socket calls: addresses, messages, options. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include "strace.h"

#define CONTROLS    8  /* control messages shown */
#define MESSAGES    8  /* messages of sendmmsg and recvmmsg */
#define DESCRIPTORS 32  /* and of one of those */

static void print_unix(struct text *t, const char *sa, uint64_t length)
{
	uint64_t name = length - 2;

	if (!name)
		return;
	text_add(t, ", sun_path=");
	if (name && !sa[2]) {
		text_add(t, "@");
		text_quoted(t, sa + 3, (size_t)name - 1, 108, false);
	} else
		text_quoted(t, sa + 2, strnlen(sa + 2, (size_t)name), 108, false);
}

void print_sockaddr(struct text *t, struct lind_arg address, uint64_t length)
{
	char sa[128] = { 0 }, name[INET6_ADDRSTRLEN];
	uint16_t family, port;

	if (length > sizeof sa)
		length = sizeof sa;
	if (length < 2 || !fetch(t, address, sa, (size_t)length)) {
		if (length < 2)
			text_add(t, address.value ? "%#llx" : "NULL", (unsigned long long)address.value);
		return;
	}
	memcpy(&family, sa, 2);
	memcpy(&port, sa + 2, 2);
	text_add(t, "{sa_family=");
	print_value(t, family, address_families);
	if (family == 1)
		print_unix(t, sa, length);
	else if (family == 2 && length >= 8)
		text_add(t, ", sin_port=htons(%u), sin_addr=inet_addr(\"%s\")", ntohs(port),
		    inet_ntop(AF_INET, sa + 4, name, sizeof name));
	else if (family == 10 && length >= 24)
		text_add(t, ", sin6_port=htons(%u), inet_pton(AF_INET6, \"%s\", &sin6_addr)", ntohs(port),
		    inet_ntop(AF_INET6, sa + 8, name, sizeof name));
	text_add(t, "}");
}

/* One control message. Descriptors are what most of them carry. */
static void print_control(struct text *t, struct lind_arg address, uint64_t length, int level, int type)
{
	int fds[DESCRIPTORS];
	uint64_t count = (length - 16) / sizeof *fds, shown = count < DESCRIPTORS ? count : DESCRIPTORS;

	text_add(t, "{cmsg_len=%llu, cmsg_level=", (unsigned long long)length);
	print_value(t, (uint64_t)level, socket_levels);
	text_add(t,
	    level == SOL_SOCKET && type == SCM_RIGHTS            ? ", cmsg_type=SCM_RIGHTS"
		: level == SOL_SOCKET && type == SCM_CREDENTIALS ? ", cmsg_type=SCM_CREDENTIALS"
								 : ", cmsg_type=%#x",
	    type);
	if (level == SOL_SOCKET && type == SCM_RIGHTS &&
	    !lind_read(lind_at(address, 16), fds, (size_t)shown * sizeof *fds)) {
		text_add(t, ", cmsg_data=[");
		for (uint64_t i = 0; i < shown; i++)
			text_add(t, "%s%d", i ? ", " : "", fds[i]);
		text_add(t, shown < count ? ", ...]" : "]");
	}
	text_add(t, "}");
}

static void print_controls(struct text *t, struct lind_arg address, uint64_t length)
{
	struct {
		uint64_t length;
		int32_t level, type;
	} head;
	uint64_t at = 0;

	text_add(t, ", msg_control=[");
	for (int i = 0;
	    i < CONTROLS && length - at >= sizeof head && !lind_read(lind_at(address, at), &head, sizeof head); i++) {
		if (head.length < sizeof head || head.length > length - at)
			break;
		text_add(t, i ? ", " : "");
		print_control(t, lind_at(address, at), head.length, head.level, head.type);
		if ((at += (head.length + 7) & ~7ull) >= length)
			break;
	}
	text_add(t, "]");
}

void print_msghdr(struct text *t, struct lind_arg address, int64_t bytes)
{
	struct {
		uint32_t name, namelen, iov, iovlen, control, controllen;
		int32_t flags;
	} msg;

	if (!fetch(t, address, &msg, sizeof msg))
		return;
	if (bytes == ADDRESSES) {
		text_add(t, "{msg_namelen=%u}", msg.namelen);
		return;
	}
	text_add(t, "{msg_name=");
	if (msg.name)
		print_sockaddr(t, (struct lind_arg){ msg.name, address.cage }, msg.namelen);
	else
		text_add(t, "NULL");
	text_add(t, ", msg_namelen=%u, msg_iov=", msg.namelen);
	print_iovecs(t, (struct lind_arg){ msg.iov, address.cage }, msg.iovlen, bytes);
	text_add(t, ", msg_iovlen=%u", msg.iovlen);
	if (msg.control && msg.controllen)
		print_controls(t, (struct lind_arg){ msg.control, address.cage }, msg.controllen);
	text_add(t, ", msg_controllen=%u, msg_flags=", msg.controllen);
	print_flags(t, (uint32_t)msg.flags, message_flags, "0");
	text_add(t, "}");
}

void print_messages(struct text *t, struct lind_arg address, int64_t count, bool received)
{
	uint32_t length;

	text_add(t, "[");
	for (int64_t i = 0; i < count && i < MESSAGES; i++) {
		struct lind_arg at = lind_at(address, (uint64_t)i * 32);

		if (lind_read(lind_at(at, 28), &length, sizeof length))
			break;
		text_add(t, "%s{msg_hdr=", i ? ", " : "");
		print_msghdr(t, at, received ? (int64_t)length : -1);
		text_add(t, ", msg_len=%u}", length);
	}
	text_add(t, count > MESSAGES ? ", ...]" : "]");
}

void print_socket_option(struct text *t, uint32_t level, uint32_t option)
{
	static const struct lind_name tcp[] = {
		{ 1, "TCP_NODELAY" },
		{ 2, "TCP_MAXSEG" },
		{ 3, "TCP_CORK" },
		{ 4, "TCP_KEEPIDLE" },
		{ 5, "TCP_KEEPINTVL" },
		{ 6, "TCP_KEEPCNT" },
		{ 7, "TCP_SYNCNT" },
		{ 8, "TCP_LINGER2" },
		{ 9, "TCP_DEFER_ACCEPT" },
		{ 10, "TCP_WINDOW_CLAMP" },
		{ 11, "TCP_INFO" },
		{ 12, "TCP_QUICKACK" },
		{ 13, "TCP_CONGESTION" },
		{ 18, "TCP_USER_TIMEOUT" },
		{ 23, "TCP_FASTOPEN" },
		{ 0, NULL },
	};
	static const struct lind_name ip[] = {
		{ 1, "IP_TOS" },
		{ 2, "IP_TTL" },
		{ 3, "IP_HDRINCL" },
		{ 4, "IP_OPTIONS" },
		{ 8, "IP_PKTINFO" },
		{ 10, "IP_MTU_DISCOVER" },
		{ 11, "IP_RECVERR" },
		{ 12, "IP_RECVTTL" },
		{ 13, "IP_RECVTOS" },
		{ 14, "IP_MTU" },
		{ 32, "IP_MULTICAST_IF" },
		{ 33, "IP_MULTICAST_TTL" },
		{ 34, "IP_MULTICAST_LOOP" },
		{ 35, "IP_ADD_MEMBERSHIP" },
		{ 36, "IP_DROP_MEMBERSHIP" },
		{ 0, NULL },
	};
	static const struct lind_name ip6[] = {
		{ 16, "IPV6_UNICAST_HOPS" },
		{ 17, "IPV6_MULTICAST_IF" },
		{ 18, "IPV6_MULTICAST_HOPS" },
		{ 19, "IPV6_MULTICAST_LOOP" },
		{ 20, "IPV6_ADD_MEMBERSHIP" },
		{ 21, "IPV6_DROP_MEMBERSHIP" },
		{ 26, "IPV6_V6ONLY" },
		{ 49, "IPV6_RECVPKTINFO" },
		{ 67, "IPV6_TCLASS" },
		{ 0, NULL },
	};
	static const struct lind_names tcps = { "tcp", tcp }, ips = { "ip", ip }, ip6s = { "ip6", ip6 };
	const struct lind_names *names = level == SOL_SOCKET ? socket_options
	    : level == IPPROTO_TCP                           ? &tcps
	    : level == IPPROTO_IP                            ? &ips
	    : level == IPPROTO_IPV6                          ? &ip6s
							     : NULL;

	if (names)
		print_value(t, option, names);
	else
		text_add(t, "%u", option);
}

void print_option_value(struct text *t, struct lind_arg address, uint64_t length)
{
	int32_t value;

	if (length != sizeof value)
		print_buffer(t, address, length);
	else if (fetch(t, address, &value, sizeof value))
		text_add(t, "[%d]", value);
}

void print_protocol(struct text *t, uint32_t domain, uint32_t protocol)
{
	static const struct lind_name rows[] = {
		{ IPPROTO_IP, "IPPROTO_IP" },
		{ IPPROTO_ICMP, "IPPROTO_ICMP" },
		{ IPPROTO_TCP, "IPPROTO_TCP" },
		{ IPPROTO_UDP, "IPPROTO_UDP" },
		{ IPPROTO_IPV6, "IPPROTO_IPV6" },
		{ IPPROTO_ICMPV6, "IPPROTO_ICMPV6" },
		{ IPPROTO_RAW, "IPPROTO_RAW" },
		{ 0, NULL },
	};
	static const struct lind_names names = { "protocol", rows };

	if (domain == AF_INET || domain == AF_INET6)
		print_value(t, protocol, &names);
	else
		text_add(t, "%u", protocol);
}
