/*
 * musl uses netlink, which cages do not have. ioctl only returns IPv4 addresses: neither those of
 * IPv6, nor those of the hardware, nor interfaces without an address.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "syscall.h"

#define MOST 1024

struct entry {
	struct ifaddrs is;
	struct sockaddr address, netmask, other;
	char name[IF_NAMESIZE];
};

void freeifaddrs(struct ifaddrs *list)
{
	while (list) {
		struct ifaddrs *next = list->ifa_next;

		free(list);
		list = next;
	}
}

/* One address that belongs to the interface in `request`; a null pointer if there is none. */
static struct sockaddr *ask(int fd, int what, const struct ifreq *request, struct sockaddr *to)
{
	struct ifreq answer = *request;

	if (ioctl(fd, what, &answer))
		return 0;
	*to = answer.ifr_addr;
	return to;
}

static struct entry *describe(int fd, const struct ifreq *request)
{
	struct ifreq flags = *request;
	struct entry *entry;

	/* The interface may have gone since. */
	if (ioctl(fd, SIOCGIFFLAGS, &flags) || !(entry = calloc(1, sizeof *entry)))
		return 0;
	memcpy(entry->name, request->ifr_name, IF_NAMESIZE - 1);
	entry->is.ifa_name = entry->name;
	entry->is.ifa_flags = (unsigned short)flags.ifr_flags;
	entry->address = request->ifr_addr;
	entry->is.ifa_addr = &entry->address;
	entry->is.ifa_netmask = ask(fd, SIOCGIFNETMASK, request, &entry->netmask);
	if (entry->is.ifa_flags & IFF_BROADCAST)
		entry->is.ifa_broadaddr = ask(fd, SIOCGIFBRDADDR, request, &entry->other);
	else if (entry->is.ifa_flags & IFF_POINTOPOINT)
		entry->is.ifa_dstaddr = ask(fd, SIOCGIFDSTADDR, request, &entry->other);
	return entry;
}

int getifaddrs(struct ifaddrs **result)
{
	struct ifreq *list = calloc(MOST, sizeof *list);
	struct ifconf all = { .ifc_len = MOST * sizeof *list, .ifc_req = list };
	struct ifaddrs **end = result;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0), failed;

	*result = 0;
	failed = !list || fd < 0 || ioctl(fd, SIOCGIFCONF, &all);
	for (size_t i = 0; !failed && i < all.ifc_len / sizeof *list; i++) {
		struct entry *entry = describe(fd, &list[i]);

		if (entry) {
			*end = &entry->is;
			end = &entry->is.ifa_next;
		}
	}
	if (fd >= 0)
		__syscall(SYS_close, fd);
	free(list);
	return failed ? -1 : 0;
}
