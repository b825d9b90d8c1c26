/* The SIOCGIF* calls and if_nametoindex, whose structs hold what a pointer's size changes. */
#include "check.h"

#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

/* Something after the struct, which nothing may overwrite. */
static struct {
	struct ifreq request;
	unsigned char after[64];
} guarded;

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
