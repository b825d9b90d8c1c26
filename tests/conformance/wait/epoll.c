/* epoll: level and edge, once, change and removal, nesting, closing. */
#include "check.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>

static struct epoll_event got[8];

static int add(int ep, int fd, uint32_t events, uint64_t data)
{
	return epoll_ctl(ep, EPOLL_CTL_ADD, fd, &(struct epoll_event){ .events = events, .data.u64 = data });
}

static void level_and_edge(int ep, int *p)
{
	char text[8];

	CHECK_EQ(add(ep, p[0], EPOLLIN, 0x123456789abcdef0), 0);
	CHECK_EQ(epoll_wait(ep, got, 8, 0), 0);
	CHECK_EQ(write(p[1], "ab", 2), 2);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(epoll_wait(ep, got, 8, 100), 1);
		CHECK_EQ(got[0].events, EPOLLIN);
		CHECK_EQ(got[0].data.u64, 0x123456789abcdef0);
	}
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_MOD, p[0], &(struct epoll_event){ .events = EPOLLIN | EPOLLET }), 0);
	CHECK_EQ(epoll_wait(ep, got, 8, 100), 1);
	CHECK_EQ(epoll_wait(ep, got, 8, 0), 0);
	CHECK_EQ(write(p[1], "c", 1), 1);
	CHECK_EQ(epoll_wait(ep, got, 8, 100), 1);
	CHECK_EQ(epoll_wait(ep, got, 8, 0), 0);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_MOD, p[0], &(struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT }), 0);
	CHECK_EQ(epoll_wait(ep, got, 8, 100), 1);
	CHECK_EQ(epoll_wait(ep, got, 8, 0), 0);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_MOD, p[0], &(struct epoll_event){ .events = EPOLLIN | EPOLLONESHOT }), 0);
	CHECK_EQ(epoll_wait(ep, got, 8, 100), 1);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_DEL, p[0], NULL), 0);
	CHECK_EQ(epoll_wait(ep, got, 8, 0), 0);
	CHECK_EQ(read(p[0], text, 8), 3);
}

/* A number that is closed leaves the set only with the last number of its file. */
static void closing(int ep)
{
	int p[2], copy = -1;

	NEED(pipe(p) == 0 && (copy = dup(p[0])) >= 0);
	CHECK_EQ(add(ep, p[0], EPOLLIN, 7), 0);
	CHECK_EQ(add(ep, copy, EPOLLIN, 8), 0);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_DEL, copy, NULL), 0);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(close(p[0]), 0);
	CHECK_EQ(epoll_wait(ep, got, 8, 0), 1);
	CHECK_EQ(got[0].data.u64, 7);
	CHECK_EQ(close(copy), 0);
	CHECK_EQ(epoll_wait(ep, got, 8, 0), 0);
	close(p[1]);
}

/* The same number for another file is another entry. */
static void reuse(int ep)
{
	int a = eventfd(1, 0), b = eventfd(1, 0);

	NEED(a >= 0 && b >= 0);
	CHECK_EQ(add(ep, a, EPOLLIN, 1), 0);
	CHECK_EQ(close(a), 0);
	CHECK_EQ(dup2(b, a), a);
	CHECK_EQ(epoll_wait(ep, got, 8, 0), 0);
	CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_MOD, a, &(struct epoll_event){ .events = EPOLLIN }), ENOENT);
	CHECK_EQ(add(ep, a, EPOLLIN, 2), 0);
	CHECK_EQ(epoll_wait(ep, got, 8, 0), 1);
	CHECK_EQ(got[0].data.u64, 2);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_DEL, a, NULL), 0);
	close(a);
	close(b);
}

int main(void)
{
	int ep = epoll_create1(EPOLL_CLOEXEC), outer = epoll_create(1), p[2], file;

	NEED(ep >= 0 && outer >= 0 && pipe(p) == 0);
	CHECK_EQ(fcntl(ep, F_GETFD), FD_CLOEXEC);
	level_and_edge(ep, p);
	closing(ep);
	reuse(ep);

	/* A set in a set. */
	CHECK_EQ(add(outer, ep, EPOLLIN, 9), 0);
	CHECK_EQ(epoll_wait(outer, got, 8, 0), 0);
	CHECK_EQ(add(ep, p[1], EPOLLOUT, 3), 0);
	CHECK_EQ(epoll_wait(outer, got, 8, 100), 1);
	CHECK_EQ(got[0].data.u64, 9);
	CHECK_ERRNO(add(ep, outer, EPOLLIN, 0), ELOOP);
	CHECK_ERRNO(add(ep, ep, EPOLLIN, 0), EINVAL);

	close(p[0]);
	CHECK_EQ(epoll_wait(ep, got, 8, 100), 1);
	CHECK_EQ(got[0].events, EPOLLOUT | EPOLLERR);
	CHECK_ERRNO(add(ep, p[1], EPOLLOUT, 0), EEXIST);
	CHECK_ERRNO(add(ep, 0x7fff, EPOLLIN, 0), EBADF);
	CHECK_ERRNO(epoll_ctl(ep, EPOLL_CTL_DEL, 0x7fff, NULL), EBADF);
	CHECK_ERRNO(epoll_ctl(ep, 99, p[1], &got[0]), EINVAL);
	file = check_file("f", "x");
	CHECK_ERRNO(add(ep, file, EPOLLIN, 0), EPERM);
	CHECK_ERRNO(add(file, p[1], EPOLLIN, 0), EINVAL);
	CHECK_ERRNO(epoll_wait(ep, got, 0, 0), EINVAL);
	CHECK_ERRNO(epoll_wait(file, got, 8, 0), EINVAL);
	/* musl takes any size. */
	CHECK_ERRNO(syscall(SYS_epoll_create, 0L), EINVAL);
	CHECK_ERRNO(epoll_create1(1), EINVAL);
	CHECK_EQ(epoll_pwait(ep, got, 8, 0, NULL), 1);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
