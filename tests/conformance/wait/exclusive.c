/* EPOLLEXCLUSIVE: what it may be asked with, and that not everybody who waits by it is woken by one
 * event. */
#include "check.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <time.h>

#define WAITERS 6

static int control(int ep, int op, int fd, uint32_t events)
{
	return epoll_ctl(ep, op, fd, &(struct epoll_event){ .events = events });
}

static void check_rules(void)
{
	int ep = epoll_create1(0), inner = epoll_create1(0), fd = eventfd(0, EFD_NONBLOCK);
	uint32_t alone = EPOLLEXCLUSIVE | EPOLLIN;

	NEED(ep >= 0 && inner >= 0 && fd >= 0);
	CHECK_EQ(control(ep, EPOLL_CTL_ADD, fd, alone), 0);
	/* It is for good, and not for what is registered already. */
	CHECK_ERRNO(control(ep, EPOLL_CTL_MOD, fd, alone), EINVAL);
	CHECK_ERRNO(control(ep, EPOLL_CTL_MOD, fd, EPOLLIN), EINVAL);
	CHECK_EQ(control(ep, EPOLL_CTL_DEL, fd, 0), 0);
	CHECK_EQ(control(ep, EPOLL_CTL_ADD, fd, EPOLLIN), 0);
	CHECK_ERRNO(control(ep, EPOLL_CTL_MOD, fd, alone), EINVAL);
	CHECK_EQ(control(ep, EPOLL_CTL_DEL, fd, 0), 0);
	CHECK_ERRNO(control(ep, EPOLL_CTL_ADD, fd, alone | EPOLLONESHOT), EINVAL);
	CHECK_ERRNO(control(ep, EPOLL_CTL_ADD, fd, alone | EPOLLPRI), EINVAL);
	CHECK_ERRNO(control(ep, EPOLL_CTL_ADD, fd, alone | EPOLLRDHUP), EINVAL);
	CHECK_ERRNO(control(ep, EPOLL_CTL_ADD, inner, alone), EINVAL);
	CHECK_EQ(control(ep, EPOLL_CTL_ADD, fd, alone | EPOLLET | EPOLLOUT | EPOLLERR | EPOLLHUP), 0);
	close(ep), close(inner), close(fd);
}

/* Whether a process sleeps, as /proc tells. */
static int sleeps(pid_t pid)
{
	char path[64], line[512], *end;
	int fd;
	ssize_t n;

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	if ((fd = open(path, O_RDONLY)) < 0)
		return 0;
	n = read(fd, line, sizeof line - 1);
	close(fd);
	line[n > 0 ? n : 0] = 0;
	return (end = strrchr(line, ')')) && end[1] && end[2] == 'S';
}

/* How many of those who wait for an event counter are woken when it counts once. */
static int woken(uint32_t how)
{
	int fd = eventfd(0, EFD_NONBLOCK), begun[2], end[2], count = 0, status;
	pid_t children[WAITERS];
	char byte;

	NEED(fd >= 0 && pipe(begun) == 0 && pipe(end) == 0);
	for (int i = 0; i < WAITERS; i++) {
		NEED((children[i] = fork()) >= 0);
		if (!children[i]) {
			int ep = epoll_create1(0);
			struct epoll_event came[2];

			close(end[1]);
			control(ep, EPOLL_CTL_ADD, fd, how | EPOLLIN);
			/* The end is for all. */
			epoll_ctl(ep, EPOLL_CTL_ADD, end[0], &(struct epoll_event){ .events = 0, .data.u32 = 1 });
			write(begun[1], "x", 1);
			_exit(epoll_wait(ep, came, 1, -1) == 1 && came[0].data.u32 == 0);
		}
	}
	for (int i = 0; i < WAITERS; i++)
		CHECK_EQ(read(begun[0], &byte, 1), 1);
	for (int i = 0; i < WAITERS; i++)
		while (!sleeps(children[i]))
			nanosleep(&(struct timespec){ 0, 1000000 }, NULL);
	CHECK_EQ(eventfd_write(fd, 1), 0);
	/* A woken waiter exits; the others get the end when one has, and no more wake up. */
	CHECK(waitpid(-1, &status, 0) > 0);
	count += WEXITSTATUS(status);
	nanosleep(&(struct timespec){ 0, 200000000 }, NULL);
	close(end[1]);
	for (int i = 1; i < WAITERS; i++) {
		CHECK(waitpid(-1, &status, 0) > 0);
		count += WEXITSTATUS(status);
	}
	close(fd), close(begun[0]), close(begun[1]), close(end[0]);
	return count;
}

int main(void)
{
	check_rules();
	if (access("/proc/self/stat", R_OK))
		return check_done();
	CHECK_EQ(woken(0), WAITERS);
	CHECK(woken(EPOLLEXCLUSIVE) < WAITERS);
	return check_done();
}
