/*
 * Datagrams that come: a socket gets datagrams of any sender, also those that arrived before it was
 * connected. The sender has to be an address that the client may send to (then the datagram is an
 * answer), or one that a rule for accept names. Other datagrams are thrown away.
 */
#include <errno.h>
#include <string.h>
#include "net.h"

/* Lines of datagrams that were thrown away: their senders decide how many come. */
#define MOST_LINES 100

static int protocol_of(const struct lind_call *call)
{
	int protocol = 0;
	uint32_t size = sizeof protocol;
	int64_t r = lind_forward_getsockopt(
	    call, (int)call->args[0].value, SOL_SOCKET, SO_PROTOCOL, lind_mine(&protocol), lind_mine(&size));

	return r < 0 ? -1 : protocol;
}

bool is_datagrams(const struct lind_call *call)
{
	int protocol = protocol_of(call);

	return protocol == IPPROTO_UDP || protocol == IPPROTO_UDPLITE || protocol == IPPROTO_ICMP ||
	    protocol == IPPROTO_ICMPV6;
}

bool datagram_fits(struct client *c, const struct lind_call *call, const struct address *from)
{
	static unsigned lines;
	int protocol = protocol_of(call);
	unsigned proto = protocol == IPPROTO_ICMP || protocol == IPPROTO_ICMPV6 ? ICMP : UDP, line;
	struct address own, by_port = *from;
	char text[160];

	if (socket_name(call->target, call->args[0], false, &own))
		by_port.port = own.port;
	if (may_come(proto, from, &by_port))
		return true;
	line = __atomic_fetch_add(&lines, 1, __ATOMIC_RELAXED);
	if (line < MOST_LINES)
		lind_log("%llu (%s) receive %s %s: no rule allows it: discarded", (unsigned long long)call->target,
		    c->name, proto == UDP ? "udp" : "icmp", address_text(from, text, sizeof text));
	else if (line == MOST_LINES)
		lind_log("many datagrams were discarded: no more lines about them");
	return false;
}

/* Takes the datagram that was looked at out of the queue. */
void datagram_drop(const struct lind_call *call)
{
	struct lind_arg none = { 0, call->target };
	char byte = 0;

	lind_forward_recvfrom(
	    call, (int)call->args[0].value, lind_mine(&byte), 1, MSG_DONTWAIT | MSG_TRUNC, none, none);
}
