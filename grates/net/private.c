/*
 * Addresses that a name reaches only where its rule says so: those of this host, of its networks,
 * and of no single host. Without that, the owner of an allowed name could have a resolver answer
 * with one of them, and so lead programs to services that trust whoever reaches them (DNS
 * rebinding).
 */
#include <string.h>
#include "net.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

struct block {
	uint8_t ip[16];
	unsigned prefix;
};

static const struct block four[] = {
	{ { 0 }, 8 },  /* this host */
	{ { 10 }, 8 },
	{ { 100, 64 }, 10 },  /* shared by customers of a provider */
	{ { 127 }, 8 },
	{ { 169, 254 }, 16 },  /* link-local; 169.254.169.254 tells secrets of machines in clouds */
	{ { 172, 16 }, 12 },
	{ { 192, 0, 0 }, 24 },
	{ { 192, 168 }, 16 },
	{ { 198, 18 }, 15 },  /* networks for measurements */
	{ { 224 }, 4 },  /* multicast */
	{ { 240 }, 4 },  /* reserved, and broadcast */
};

static const struct block six[] = {
	{ { 0, 0x64, 0xff, 0x9b, 0, 1 }, 48 },  /* translated to IPv4 in a network's own way */
	{ { 1 }, 64 },  /* thrown away */
	{ { 0xfc }, 7 },  /* unique local */
	{ { 0xfe, 0x80 }, 10 },  /* link-local */
	{ { 0xfe, 0xc0 }, 10 },  /* site-local */
	{ { 0xff }, 8 },  /* multicast */
};

/* Addresses of IPv6 that stand for one of IPv4, which is at byte `at` of them. */
static const struct {
	struct block block;
	unsigned at;
	uint8_t inverted;
} embedding[] = {
	{ { { 0 }, 96 }, 12, 0 },  /* among them :: and ::1, as 0.0.0.0 and 0.0.0.1 */
	{ { { [10] = 0xff, 0xff }, 96 }, 12, 0 },  /* mapped */
	{ { { [8] = 0xff, 0xff }, 96 }, 12, 0 },  /* translated (RFC 2765) */
	{ { { 0, 0x64, 0xff, 0x9b }, 96 }, 12, 0 },  /* NAT64 */
	{ { { 0x20, 0x02 }, 16 }, 2, 0 },  /* 6to4 */
	{ { { 0x20, 0x01, 0, 0 }, 32 }, 4, 0 },  /* Teredo: the server */
	{ { { 0x20, 0x01, 0, 0 }, 32 }, 12, 0xff },  /* Teredo: the client */
};

static bool is_in(int family, const uint8_t *ip, const struct block *block)
{
	struct address a = { .family = family }, network = { .family = family };

	memcpy(a.ip, ip, family == AF_INET ? 4 : 16);
	memcpy(network.ip, block->ip, sizeof network.ip);
	return address_is(&a, &network, block->prefix);
}

static bool is_private4(const uint8_t *ip)
{
	for (size_t i = 0; i < COUNT(four); i++)
		if (is_in(AF_INET, ip, &four[i]))
			return true;
	return false;
}

/* ISATAP: the interface is named by an address of IPv4, in any network. */
static bool names_interface(const uint8_t *ip)
{
	return !(ip[8] & 0xfd) && !ip[9] && ip[10] == 0x5e && ip[11] == 0xfe;
}

bool address_is_private(const struct address *a)
{
	if (a->family == AF_INET)
		return is_private4(a->ip);
	if (a->family != AF_INET6)
		return false;
	for (size_t i = 0; i < COUNT(six); i++)
		if (is_in(AF_INET6, a->ip, &six[i]))
			return true;
	for (size_t i = 0; i < COUNT(embedding); i++) {
		uint8_t ip[4];

		for (unsigned j = 0; j < sizeof ip; j++)
			ip[j] = a->ip[embedding[i].at + j] ^ embedding[i].inverted;
		if (is_in(AF_INET6, a->ip, &embedding[i].block) && is_private4(ip))
			return true;
	}
	return names_interface(a->ip) && is_private4(a->ip + 12);
}
