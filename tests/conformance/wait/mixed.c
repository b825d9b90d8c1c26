/* An event loop over a pipe, a socket, a timer and a counter, by poll, select and epoll alike. */
#include "check.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/timerfd.h>

enum { PIPE, SOCKET, TIMER, COUNTER, KINDS };

static int sources[KINDS], writers[KINDS];

/* Bit i: source i is readable. */
static unsigned by_poll(void)
{
	struct pollfd fds[KINDS];
	unsigned ready = 0;

	for (int i = 0; i < KINDS; i++)
		fds[i] = (struct pollfd){ sources[i], POLLIN, 0 };
	poll(fds, KINDS, 0);
	for (int i = 0; i < KINDS; i++)
		ready |= (unsigned)!!(fds[i].revents & POLLIN) << i;
	return ready;
}

static unsigned by_select(void)
{
	struct timeval none = { 0 };
	unsigned ready = 0;
	fd_set set;

	FD_ZERO(&set);
	for (int i = 0; i < KINDS; i++)
		FD_SET(sources[i], &set);
	select(100, &set, NULL, NULL, &none);
	for (int i = 0; i < KINDS; i++)
		ready |= (unsigned)!!FD_ISSET(sources[i], &set) << i;
	return ready;
}

static unsigned by_epoll(int ep)
{
	struct epoll_event events[KINDS];
	int count = epoll_wait(ep, events, KINDS, 0);
	unsigned ready = 0;

	for (int i = 0; i < count; i++)
		ready |= 1u << events[i].data.u32;
	return ready;
}

int main(void)
{
	struct itimerspec soon = { .it_value.tv_nsec = 1 };
	int p[2], pair[2], ep = epoll_create1(0);
	uint64_t one = 1;
	unsigned want = 0;

	NEED(pipe(p) == 0 && socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	sources[PIPE] = p[0], writers[PIPE] = p[1];
	sources[SOCKET] = pair[0], writers[SOCKET] = pair[1];
	NEED((sources[TIMER] = timerfd_create(CLOCK_MONOTONIC, 0)) >= 0);
	NEED((sources[COUNTER] = writers[COUNTER] = eventfd(0, 0)) >= 0);
	for (int i = 0; i < KINDS; i++)
		NEED(epoll_ctl(ep, EPOLL_CTL_ADD, sources[i],
			 &(struct epoll_event){ .events = EPOLLIN, .data.u32 = (uint32_t)i }) == 0);
	for (int i = 0; i < KINDS; i++) {
		CHECK_EQ(by_poll(), want);
		CHECK_EQ(by_select(), want);
		CHECK_EQ(by_epoll(ep), want);
		if (i == TIMER)
			NEED(timerfd_settime(sources[i], 0, &soon, NULL) == 0 &&
			    poll(&(struct pollfd){ sources[i], POLLIN, 0 }, 1, 5000) == 1);
		else
			NEED(write(writers[i], &one, 8) == 8);
		want |= 1u << i;
	}
	for (int i = 0; i < KINDS; i++) {
		CHECK_EQ(by_poll(), want);
		CHECK_EQ(by_select(), want);
		CHECK_EQ(by_epoll(ep), want);
		NEED(read(sources[i], &one, 8) == 8);
		want &= ~(1u << i);
	}
	CHECK_EQ(by_epoll(ep), 0);
	return check_done();
}
