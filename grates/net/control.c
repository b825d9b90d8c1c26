/* Control messages: what they ask for. */
#include <string.h>
#include "control.h"

struct control *control_at(const struct msghdr *m, size_t at)
{
	struct control *c = (struct control *)((char *)m->msg_control + at);

	if (!m->msg_control || at > m->msg_controllen || m->msg_controllen - at < sizeof *c || c->length < sizeof *c ||
	    c->length > m->msg_controllen - at)
		return NULL;
	return c;
}

size_t control_next(size_t at, const struct control *c)
{
	return at + ((c->length + 7) & ~7ull);
}

bool control_is_harmless(const struct control *c)
{
	uint32_t interface = 0;

	if (c->level == IPPROTO_IP && c->type == 8 && c->length >= sizeof *c + 12)
		memcpy(&interface, c->data, 4);
	if (c->level == IPPROTO_IPV6 && c->type == 50 && c->length >= sizeof *c + 20)
		memcpy(&interface, c->data + 16, 4);
	if (c->level == IPPROTO_IP)
		return c->type == 1 || c->type == 2 || (c->type == 8 && !interface);
	if (c->level == IPPROTO_IPV6)
		return c->type == 52 || c->type == 67 || c->type == 62 || (c->type == 50 && !interface);
	/* SCM_RIGHTS, SCM_CREDENTIALS, SO_TIMESTAMPING (which times are to be told), SCM_TXTIME,
	 * SO_PRIORITY; UDP_SEGMENT. */
	if (c->level == SOL_SOCKET)
		return c->type == 1 || c->type == 2 || c->type == 37 || c->type == 61 || c->type == 12;
	return c->level == IPPROTO_UDP && c->type == 103;
}

bool control_source(const struct control *c, struct address *from)
{
	struct sockaddr_in in = { .sin_family = AF_INET };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6 };

	if (c->level == IPPROTO_IP && c->type == 8 && c->length >= sizeof *c + 12) {
		memcpy(&in.sin_addr, c->data + 4, 4);
		return address_parse(&in, sizeof in, false, from) == 0;
	}
	if (c->level == IPPROTO_IPV6 && c->type == 50 && c->length >= sizeof *c + 20) {
		memcpy(&in6.sin6_addr, c->data, 16);
		return address_parse(&in6, sizeof in6, false, from) == 0;
	}
	return false;
}
