/* The list of mounts may be waited for: it can be read at once, and has priority events when mounts
 * change. */
#include "check.h"

#include <poll.h>
#include <sys/epoll.h>

static int events_of(int epoll)
{
	struct epoll_event event = { 0 };
	int n = epoll_wait(epoll, &event, 1, 0);

	return n == 1 ? (int)event.events : -n;
}

static void check(const char *path)
{
	struct epoll_event event = { .events = EPOLLPRI | EPOLLERR };
	int fd = open(path, O_RDONLY | O_CLOEXEC), epoll = epoll_create1(EPOLL_CLOEXEC), again = dup(fd);
	struct pollfd poll_it = { .fd = fd, .events = POLLPRI };
	char text[64];

	NEED(fd >= 0 && epoll >= 0 && again >= 0);
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
	CHECK_ERRNO(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), EEXIST);
	CHECK_EQ(events_of(epoll), 0);
	CHECK_EQ(poll(&poll_it, 1, 0), 0);
	event.events = EPOLLIN;
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_MOD, fd, &event), 0);
	CHECK_EQ(events_of(epoll), EPOLLIN);
	event.events = EPOLLPRI;
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, again, &event), 0);
	CHECK_EQ(read(fd, text, sizeof text), (ssize_t)sizeof text);
	CHECK_EQ(epoll_ctl(epoll, EPOLL_CTL_DEL, fd, NULL), 0);
	CHECK_EQ(events_of(epoll), 0);
	close(fd), close(again), close(epoll);
}

int main(void)
{
	check("/proc/mounts");
	check("/proc/self/mountinfo");
	return check_done();
}
