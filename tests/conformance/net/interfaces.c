/* The SIOCGIF* calls, whose structs hold what a pointer's size changes, and what libc makes of
 * them. */
#include "check.h"

#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Something after the struct, which nothing may overwrite. */
static struct {
	struct ifreq request;
	unsigned char after[64];
} guarded;

static void check_names(void)
{
	struct if_nameindex *all = if_nameindex();
	int seen = 0;

	NEED(all);
	for (struct if_nameindex *i = all; i->if_index; i++) {
		char name[IF_NAMESIZE];

		CHECK_EQ(if_nametoindex(i->if_name), i->if_index);
		CHECK_STR(if_indextoname(i->if_index, name), i->if_name);
		seen += !strcmp(i->if_name, "lo");
		for (struct if_nameindex *other = all; other != i; other++)
			CHECK(other->if_index != i->if_index);
	}
	CHECK_EQ(seen, 1);
	if_freenameindex(all);
	CHECK(!if_indextoname(0x7ffffff0, (char[IF_NAMESIZE]){ 0 }));
	CHECK_EQ(errno, ENXIO);
}

/* The loopback's address, if it is up. */
static void check_addresses(void)
{
	struct ifaddrs *all;
	int seen = 0;

	NEED(!getifaddrs(&all));
	for (struct ifaddrs *i = all; i; i = i->ifa_next) {
		const struct sockaddr_in *address = (const void *)i->ifa_addr, *mask = (const void *)i->ifa_netmask;

		CHECK(i->ifa_name && if_nametoindex(i->ifa_name));
		if (!address || address->sin_family != AF_INET || strcmp(i->ifa_name, "lo"))
			continue;
		CHECK(i->ifa_flags & IFF_LOOPBACK);
		CHECK(mask && mask->sin_family == AF_INET);
		seen += address->sin_addr.s_addr == htonl(INADDR_LOOPBACK) && mask &&
		    mask->sin_addr.s_addr == htonl(0xff000000);
	}
	CHECK(seen == 1 || !(guarded.request.ifr_flags & IFF_UP));
	freeifaddrs(all);
}

int main(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	char name[IF_NAMESIZE];

	NEED(fd >= 0);
	memset(&guarded, 0xee, sizeof guarded);
	strcpy(guarded.request.ifr_name, "lo");
	if (ioctl(fd, SIOCGIFFLAGS, &guarded.request)) {
		if (errno == ENODEV)
			check_skip("no interface named lo here");
		CHECK_EQ(errno, 0);
		return check_done();
	}
	CHECK(guarded.request.ifr_flags & IFF_LOOPBACK);
	check_addresses();
	check_names();
	for (size_t i = 0; i < sizeof guarded.after; i++)
		NEED(guarded.after[i] == 0xee);
	CHECK_EQ(ioctl(fd, SIOCGIFINDEX, &guarded.request), 0);
	CHECK_EQ(guarded.request.ifr_ifindex, if_nametoindex("lo"));
	CHECK_STR(if_indextoname(if_nametoindex("lo"), name), "lo");
	strcpy(guarded.request.ifr_name, "nosuch0");
	CHECK_ERRNO(ioctl(fd, SIOCGIFFLAGS, &guarded.request), ENODEV);
	close(fd);
	return check_done();
}
