/* Options about multicast groups whose values hold socket addresses: sizes, errors, and joining on
 * the loopback. */
#include "../check.h"
#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

static void set_address(struct sockaddr_storage *to, const char *text)
{
	struct sockaddr_in in = { .sin_family = AF_INET };

	in.sin_addr.s_addr = inet_addr(text);
	memset(to, 0, sizeof *to);
	memcpy(to, &in, sizeof in);
}

int main(void)
{
	struct group_req join = { .gr_interface = if_nametoindex("lo") };
	struct group_source_req source = { .gsr_interface = if_nametoindex("lo") };
	struct group_filter filter = { .gf_interface = if_nametoindex("lo"), .gf_numsrc = 1 };
	socklen_t len = sizeof filter;
	int fd = socket(AF_INET, SOCK_DGRAM, 0), six = socket(AF_INET6, SOCK_DGRAM, 0);

	if (fd < 0 || !join.gr_interface)
		check_skip("there is no network");
	set_address(&join.gr_group, "239.1.2.3");
	set_address(&source.gsr_group, "239.1.2.3");
	set_address(&source.gsr_source, "127.0.0.1");
	set_address(&filter.gf_group, "239.1.2.3");
	CHECK_ERRNO(setsockopt(fd, IPPROTO_IP, MCAST_JOIN_GROUP, &join, sizeof join - 1), EINVAL);
	CHECK_ERRNO(setsockopt(fd, IPPROTO_IP, MCAST_JOIN_GROUP, &join, 0), EINVAL);
	CHECK_ERRNO(setsockopt(fd, IPPROTO_IP, MCAST_JOIN_SOURCE_GROUP, &source, sizeof source - 1), EINVAL);
	CHECK_ERRNO(setsockopt(fd, IPPROTO_IP, MCAST_MSFILTER, &filter, 8), EINVAL);
	CHECK_ERRNO(setsockopt(fd, IPPROTO_IP, MCAST_LEAVE_GROUP, &join, sizeof join), EADDRNOTAVAIL);
	if (setsockopt(fd, IPPROTO_IP, MCAST_JOIN_GROUP, &join, sizeof join) == 0) {
		CHECK_ERRNO(setsockopt(fd, IPPROTO_IP, MCAST_JOIN_GROUP, &join, sizeof join), EADDRINUSE);
		CHECK_EQ(setsockopt(fd, IPPROTO_IP, MCAST_BLOCK_SOURCE, &source, sizeof source), 0);
		CHECK_EQ(getsockopt(fd, IPPROTO_IP, MCAST_MSFILTER, &filter, &len), 0);
		CHECK_EQ(filter.gf_fmode, MCAST_EXCLUDE);
		CHECK_EQ(filter.gf_numsrc, 1);
		CHECK(!memcmp(&((struct sockaddr_in *)&filter.gf_slist[0])->sin_addr, "\x7f\0\0\1", 4));
		CHECK_EQ(setsockopt(fd, IPPROTO_IP, MCAST_UNBLOCK_SOURCE, &source, sizeof source), 0);
		filter.gf_fmode = MCAST_EXCLUDE;
		CHECK_EQ(setsockopt(fd, IPPROTO_IP, MCAST_MSFILTER, &filter, sizeof filter), 0);
		CHECK_EQ(setsockopt(fd, IPPROTO_IP, MCAST_LEAVE_GROUP, &join, sizeof join), 0);
	} else {
		CHECK(errno == EACCES || errno == EPERM || errno == ENODEV);
	}
	set_address(&join.gr_group, "10.1.2.3");
	CHECK_ERRNO(setsockopt(fd, IPPROTO_IP, MCAST_JOIN_GROUP, &join, sizeof join), EINVAL);
	if (six >= 0) {
		CHECK_ERRNO(setsockopt(six, IPPROTO_IPV6, MCAST_JOIN_GROUP, &join, sizeof join - 1), EINVAL);
		close(six);
	}
	close(fd);
	return check_done();
}
