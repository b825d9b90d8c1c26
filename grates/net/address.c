/*
 * Socket addresses in one form. One place can be written in several ways, and a rule must not be
 * avoided by choosing another: ::ffff:1.2.3.4 is 1.2.3.4; as a destination 0.0.0.0 and :: are this
 * host, and are passed on as 127.0.0.1 and ::1; an address without a family is one of IPv4, which
 * is what UDP takes it for.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "net.h"

/* The mark that tells the kernel that an address is on the runner's own loopback
 * (src/kernel/fd/loopback.rs), in sin_zero and sin6_flowinfo. */
static const uint8_t mark[8] = { 0xf1, 'o', 'w', 'n', 0, 'l', 'o', 0x1f };

static bool is_zero(const uint8_t *ip, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (ip[i])
			return false;
	return true;
}

static int64_t parse4(const struct sockaddr_in *in, bool out, struct address *a)
{
	a->family = AF_INET;
	a->own = !memcmp(in->sin_zero, mark, sizeof mark);
	memcpy(a->ip, &in->sin_addr, 4);
	a->port = ntohs(in->sin_port);
	if (out && is_zero(a->ip, 4))
		memcpy(a->ip, "\x7f\0\0\1", 4);
	return 0;
}

static int64_t parse6(const struct sockaddr_in6 *in, bool out, struct address *a)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const uint8_t *ip = in->sin6_addr.s6_addr;

	a->family = AF_INET6;
	a->port = ntohs(in->sin6_port);
	a->own = !memcmp(&in->sin6_flowinfo, mark, sizeof in->sin6_flowinfo);
	if (!memcmp(ip, mapped, sizeof mapped)) {
		a->family = AF_INET;
		a->mapped = true;
		memcpy(a->ip, ip + 12, 4);
		if (out && is_zero(a->ip, 4))
			memcpy(a->ip, "\x7f\0\0\1", 4);
		return 0;
	}
	memcpy(a->ip, ip, 16);
	if (out && is_zero(a->ip, 16))
		a->ip[15] = 1;
	/* Elsewhere a scope says nothing. */
	if ((ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80) || ip[0] == 0xff)
		a->scope = in->sin6_scope_id;
	return 0;
}

static int64_t parse_unix(const char *bytes, size_t length, struct address *a)
{
	size_t n = length - sizeof(sa_family_t);

	if (n > sizeof((struct sockaddr_un *)0)->sun_path)
		return -EINVAL;
	a->family = AF_UNIX;
	memcpy(a->path, bytes + sizeof(sa_family_t), n);
	a->path[n] = 0;
	a->abstract = !n || !a->path[0];
	a->path_length = (uint8_t)(a->abstract ? n : strlen(a->path));
	return 0;
}

int64_t address_parse(const void *bytes, size_t length, bool out, struct address *a)
{
	struct sockaddr_storage s = { 0 };

	memset(a, 0, sizeof *a);
	if (length < sizeof(sa_family_t) || length > sizeof s)
		return -EINVAL;
	memcpy(&s, bytes, length);
	switch (s.ss_family) {
	case AF_UNIX:
		return parse_unix(bytes, length, a);
	case AF_INET6:
		/* Without a scope, as before RFC 2553, it has four bytes less. */
		return length < 24 ? -EINVAL : parse6((struct sockaddr_in6 *)&s, out, a);
	case AF_INET:
		return length < sizeof(struct sockaddr_in) ? -EINVAL : parse4((struct sockaddr_in *)&s, out, a);
	case AF_UNSPEC:
		return 0;
	default:
		return -EAFNOSUPPORT;
	}
}

void address_unmark(void *bytes, size_t length)
{
	struct sockaddr_in *in = bytes;
	struct sockaddr_in6 *in6 = bytes;

	if (length >= sizeof *in && in->sin_family == AF_INET && !memcmp(in->sin_zero, mark, sizeof mark))
		memset(in->sin_zero, 0, sizeof mark);
	if (length >= sizeof *in6 && in6->sin6_family == AF_INET6 &&
	    !memcmp(&in6->sin6_flowinfo, mark, sizeof in6->sin6_flowinfo))
		in6->sin6_flowinfo = 0;
}

socklen_t address_write(const struct address *a, struct sockaddr_storage *to)
{
	struct sockaddr_in *in = (struct sockaddr_in *)to;
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)to;

	memset(to, 0, sizeof *to);
	to->ss_family = (sa_family_t)(a->mapped ? AF_INET6 : a->family);
	if (a->family == AF_UNIX) {
		memcpy(((struct sockaddr_un *)to)->sun_path, a->path, a->path_length);
		/* The NUL only where there is room. */
		return (socklen_t)(sizeof(sa_family_t) + a->path_length +
		    (!a->abstract && a->path_length < sizeof((struct sockaddr_un *)0)->sun_path));
	}
	if (a->family == AF_INET && !a->mapped) {
		in->sin_port = htons(a->port);
		memcpy(&in->sin_addr, a->ip, 4);
		if (a->own)
			memcpy(in->sin_zero, mark, 8);
		return sizeof *in;
	}
	if (a->family == AF_UNSPEC)
		return sizeof *in;
	in6->sin6_port = htons(a->port);
	in6->sin6_scope_id = a->scope;
	if (a->own)
		memcpy(&in6->sin6_flowinfo, mark, 4);
	if (a->mapped) {
		in6->sin6_addr.s6_addr[10] = in6->sin6_addr.s6_addr[11] = 0xff;
		memcpy(in6->sin6_addr.s6_addr + 12, a->ip, 4);
	} else
		memcpy(in6->sin6_addr.s6_addr, a->ip, 16);
	return sizeof *in6;
}

const char *address_text(const struct address *a, char *text, size_t size)
{
	char ip[INET6_ADDRSTRLEN], scope[16] = "";

	if (a->family == AF_UNIX) {
		size_t n = (size_t)snprintf(text, size, "unix:%s", a->abstract ? "@" : "");

		for (size_t i = a->abstract; i < a->path_length && n + 1 < size; i++)
			text[n++] = a->path[i] < ' ' || a->path[i] > '~' ? '?' : a->path[i];
		text[n < size ? n : size - 1] = 0;
		return text;
	}
	if (a->family == AF_UNSPEC) {
		snprintf(text, size, "no address");
		return text;
	}
	inet_ntop(a->family, a->ip, ip, sizeof ip);
	if (a->scope)
		snprintf(scope, sizeof scope, "%%%u", (unsigned)a->scope);
	snprintf(text, size, a->family == AF_INET6 ? "[%s%s]:%u" : "%s%s:%u", ip, scope, a->port);
	return text;
}

bool address_is(const struct address *a, const struct address *network, unsigned prefix)
{
	unsigned bytes = prefix / 8, bits = prefix % 8;

	if (a->family != network->family || memcmp(a->ip, network->ip, bytes))
		return false;
	return !bits || !((a->ip[bytes] ^ network->ip[bytes]) >> (8 - bits));
}

const char *address_of_text(const char *text, struct address *a, unsigned *prefix)
{
	char copy[64], *slash, *percent, *end;
	unsigned most;

	memset(a, 0, sizeof *a);
	if (snprintf(copy, sizeof copy, "%s", text) >= (int)sizeof copy)
		return "not an address";
	if ((slash = strchr(copy, '/')))
		*slash++ = 0;
	if ((percent = strchr(copy, '%'))) {
		*percent++ = 0;
		a->scope = (uint32_t)strtoul(percent, &end, 10);
		if (*percent < '0' || *percent > '9' || *end)
			return "a scope must be the number of an interface";
	}
	a->family = strchr(copy, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(a->family, copy, a->ip) != 1)
		return "not an address";
	most = a->family == AF_INET ? 32 : 128;
	*prefix = most;
	if (slash) {
		*prefix = (unsigned)strtoul(slash, &end, 10);
		if (*slash < '0' || *slash > '9' || *end || *prefix > most)
			return "not a prefix length";
	}
	/* Clients' addresses of this form are IPv4. */
	if (a->family == AF_INET6 && *prefix >= 96 && is_zero(a->ip, 10) && a->ip[10] == 0xff && a->ip[11] == 0xff) {
		a->family = AF_INET;
		*prefix -= 96;
		memmove(a->ip, a->ip + 12, 4);
		memset(a->ip + 4, 0, 12);
	}
	for (unsigned bit = *prefix; bit < (a->family == AF_INET ? 32 : 128); bit++)
		if (a->ip[bit / 8] >> (7 - bit % 8) & 1)
			return "has bits beyond its prefix";
	return NULL;
}
