/*
 * musl uses netlink, which cages do not have. By ioctl: the interfaces that have an IPv4 address,
 * and those whose number is not far above another's.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <net/if.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include "syscall.h"

#define MOST 1024
#define GAP 32

struct found {
	unsigned index;
	char name[IF_NAMESIZE];
};

static void add(int fd, unsigned index, struct found *found, size_t *count)
{
	struct ifreq request = { .ifr_ifindex = index };

	for (size_t i = 0; i < *count; i++)
		if (found[i].index == index)
			return;
	/* By its number, because an interface with an address may be listed by a label ("eth0:1"). */
	if (*count == MOST || ioctl(fd, SIOCGIFNAME, &request))
		return;
	found[*count].index = index;
	memcpy(found[*count].name, request.ifr_name, IF_NAMESIZE - 1);
	found[(*count)++].name[IF_NAMESIZE - 1] = 0;
}

static int by_index(const void *a, const void *b)
{
	unsigned x = ((const struct found *)a)->index, y = ((const struct found *)b)->index;

	return (x > y) - (x < y);
}

static size_t find(int fd, struct found *found)
{
	struct ifreq *list = calloc(MOST, sizeof *list);
	struct ifconf all = { .ifc_len = MOST * sizeof *list, .ifc_req = list };
	size_t count = 0;

	if (list && !ioctl(fd, SIOCGIFCONF, &all))
		for (size_t i = 0; i < all.ifc_len / sizeof *list; i++)
			if (!ioctl(fd, SIOCGIFINDEX, &list[i]))
				add(fd, list[i].ifr_ifindex, found, &count);
	free(list);
	for (unsigned index = 1, last = 0; index <= last + GAP; index++) {
		size_t before = count;

		add(fd, index, found, &count);
		for (size_t i = 0; i < count && last < index; i++)
			if (found[i].index == index)
				last = index;
		if (count == before && count == MOST)
			break;
	}
	qsort(found, count, sizeof *found, by_index);
	return count;
}

struct if_nameindex *if_nameindex(void)
{
	struct if_nameindex *names = 0;
	struct found *found;
	int fd, state;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
	found = calloc(MOST, sizeof *found);
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (found && fd >= 0) {
		size_t count = find(fd, found);

		names = calloc(1, (count + 1) * sizeof *names + count * IF_NAMESIZE);
		for (size_t i = 0; names && i < count; i++) {
			names[i].if_index = found[i].index;
			names[i].if_name = (char *)(names + count + 1) + i * IF_NAMESIZE;
			memcpy(names[i].if_name, found[i].name, IF_NAMESIZE);
		}
	}
	if (fd >= 0)
		__syscall(SYS_close, fd);
	free(found);
	pthread_setcancelstate(state, 0);
	if (!names)
		errno = ENOBUFS;
	return names;
}
