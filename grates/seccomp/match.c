/* Patterns of paths and of socket addresses. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include "seccomp.h"

/*
 * `?` is one character and `*` any of them, neither over a slash; `**` goes over slashes too.
 * Remembers the last star of each kind only, so that no pattern takes long.
 */
bool glob(const char *pattern, const char *text)
{
	const char *star = NULL, *star_text = NULL, *wide = NULL, *wide_text = NULL;

	for (;;) {
		if (pattern[0] == '*' && pattern[1] == '*') {
			pattern += 2;
			wide = pattern;
			wide_text = text;
			star = NULL;
			continue;
		}
		if (*pattern == '*') {
			star = ++pattern;
			star_text = text;
			continue;
		}
		if (!*text && !*pattern)
			return true;
		if (*text && (*pattern == *text || (*pattern == '?' && *text != '/'))) {
			pattern++;
			text++;
		} else if (star && *star_text && *star_text != '/') {
			pattern = star;
			text = ++star_text;
		} else if (wide && *wide_text) {
			pattern = wide;
			text = ++wide_text;
			star = NULL;
		} else
			return false;
	}
}

static const char *parse_ports(const char *text, struct address *to)
{
	char *end;
	unsigned long first, last;

	if (!strcmp(text, "*"))
		return NULL;
	first = last = strtoul(text, &end, 10);
	if (end != text && *end == '-')
		last = strtoul(text = end + 1, &end, 10);
	if (end == text || *end || first > last || last > 65535)
		return "the port must be a number, two with - between, or *";
	to->first_port = (uint16_t)first;
	to->last_port = (uint16_t)last;
	return NULL;
}

/* unix:PATH, unix:@NAME, ADDRESS[/BITS][:PORTS], [ADDRESS][/BITS][:PORTS], *[:PORTS] */
const char *parse_address(const char *text, struct address *to)
{
	char host[INET6_ADDRSTRLEN + 1];
	size_t length;
	char *end;

	*to = (struct address){ .first_port = 0, .last_port = 65535 };
	if (!strncmp(text, "unix:", 5)) {
		to->family = AF_UNIX;
		to->name = text + 5;
		return *to->name == '/' || *to->name == '@' ? NULL : "after unix: /PATH or @NAME is expected";
	}
	if (*text == '[') {
		length = strcspn(++text, "]");
		to->family = AF_INET6;
		to->prefix = 128;
	} else {
		length = strcspn(text, "/:");
		to->family = length == 1 && *text == '*' ? 0 : AF_INET;
		to->prefix = 32;
	}
	if (length >= sizeof host || (to->family == AF_INET6 && text[length] != ']'))
		return "not an address";
	memcpy(host, text, length);
	host[length] = 0;
	if (to->family && inet_pton(to->family, host, to->bytes) != 1)
		return "not an address";
	text += length + (text[length] == ']');
	if (*text == '/' && to->family) {
		unsigned long bits = strtoul(text + 1, &end, 10);

		if (end == text + 1 || bits > to->prefix)
			return "too many bits after /";
		to->prefix = (unsigned)bits;
		text = end;
	}
	return *text == ':' ? parse_ports(text + 1, to) : *text ? "expected : and a port" : NULL;
}

static bool same_prefix(const uint8_t *a, const uint8_t *b, unsigned bits)
{
	return !memcmp(a, b, bits / 8) && (bits % 8 == 0 || (a[bits / 8] ^ b[bits / 8]) >> (8 - bits % 8) == 0);
}

static bool unix_matches(const struct address *a, const struct sockaddr_storage *to, size_t length)
{
	const char *path = (const char *)to + offsetof(struct sockaddr_un, sun_path);
	size_t n =
	    length > offsetof(struct sockaddr_un, sun_path) ? length - offsetof(struct sockaddr_un, sun_path) : 0;
	char name[sizeof *to + 1];

	if (!n || n >= sizeof name - 1)
		return false;
	/* A NUL in an abstract name is part of it: no pattern speaks of it. */
	if (!*path) {
		if (memchr(path + 1, 0, n - 1))
			return false;
		name[0] = '@';
		memcpy(name + 1, path + 1, n - 1);
		name[n] = 0;
	} else {
		n = strnlen(path, n);
		memcpy(name, path, n);
		name[n] = 0;
	}
	return glob(a->name, name);
}

bool address_matches(const struct address *a, const struct sockaddr_storage *to, size_t length)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	const struct sockaddr_in *in = (const void *)to;
	const struct sockaddr_in6 *in6 = (const void *)to;
	const uint8_t *bytes;
	uint16_t port;
	int family = to->ss_family;

	if (length < sizeof to->ss_family)
		return false;
	if (a->family == AF_UNIX)
		return family == AF_UNIX && unix_matches(a, to, length);
	/* Linux takes an address of no family for one of IPv4 in some calls. */
	if ((family == AF_INET || family == AF_UNSPEC) && length >= sizeof *in) {
		family = AF_INET;
		bytes = (const uint8_t *)&in->sin_addr;
		port = ntohs(in->sin_port);
	} else if (family == AF_INET6 && length >= 24) {
		bytes = (const uint8_t *)&in6->sin6_addr;
		port = ntohs(in6->sin6_port);
		if (!memcmp(bytes, mapped, sizeof mapped)) {
			family = AF_INET;
			bytes += sizeof mapped;
		}
	} else
		return false;
	return port >= a->first_port && port <= a->last_port &&
	    (!a->family || (a->family == family && same_prefix(a->bytes, bytes, a->prefix)));
}
