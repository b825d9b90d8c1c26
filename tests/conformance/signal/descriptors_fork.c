/* A signalfd that a child inherited tells of the child's signals, to read as to poll; the set is
 * one for all. */
#include "check.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>

static int fd, other;

static int ready(int which)
{
	return poll(&(struct pollfd){ .fd = which, .events = POLLIN }, 1, 0);
}

/* The signal that is read, or minus an errno. */
static int takes(int which)
{
	struct signalfd_siginfo info;

	return read(which, &info, sizeof info) == sizeof info ? (int)info.ssi_signo : -errno;
}

static void in_child(void (*act)(void))
{
	int status = -1;
	pid_t child = fork();

	NEED(child >= 0);
	if (!child) {
		check_failures = 0;
		act();
		fflush(stdout);
		_exit(check_failures);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
}

static void has_none(void)
{
	CHECK_EQ(ready(fd), 0);
	CHECK_EQ(ready(other), 0);
	CHECK_EQ(takes(fd), -EAGAIN);
}

static void has_its_own(void)
{
	struct epoll_event wanted = { .events = EPOLLIN }, came;
	int ep = epoll_create1(0);

	has_none();
	raise(SIGUSR2);
	CHECK_EQ(ready(fd), 1);
	CHECK_EQ(ready(other), 1);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &wanted), 0);
	CHECK_EQ(epoll_wait(ep, &came, 1, 0), 1);
	CHECK_EQ(takes(other), SIGUSR2);
	CHECK_EQ(epoll_wait(ep, &came, 1, 0), 0);
	CHECK_EQ(ready(fd), 0);
	/* And its child's child. */
	raise(SIGUSR1);
	in_child(has_none);
	CHECK_EQ(ready(fd), 1);
}

static void sets_another(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR2);
	raise(SIGUSR1);
	CHECK_EQ(ready(fd), 1);
	CHECK_EQ(signalfd(fd, &set, 0), fd);
	CHECK_EQ(ready(fd), 0);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(other, F_GETFD), 0);
}

static void sets_from_nothing(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	CHECK_EQ(signalfd(other, &set, 0), other);
}

int main(void)
{
	sigset_t set, none;

	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	NEED(sigprocmask(SIG_BLOCK, &set, NULL) == 0);
	NEED((fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC)) >= 0);
	NEED((other = dup(fd)) >= 0);
	raise(SIGUSR1);
	in_child(has_none);
	in_child(has_its_own);
	CHECK_EQ(ready(fd), 1);
	in_child(sets_another);
	CHECK_EQ(ready(fd), 0);
	CHECK_EQ(takes(fd), -EAGAIN);
	raise(SIGUSR2);
	CHECK_EQ(ready(fd), 1);
	CHECK_EQ(takes(other), SIGUSR2);

	/* A descriptor that listened for nothing when the child got it. */
	close(other);
	NEED((other = signalfd(-1, &none, SFD_NONBLOCK)) >= 0);
	CHECK_EQ(ready(other), 0);
	in_child(sets_from_nothing);
	CHECK_EQ(ready(other), 1);
	CHECK_EQ(takes(other), SIGUSR1);
	return check_done();
}
