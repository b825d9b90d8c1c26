/* signalfd: which signals come that way, what is read, and how poll and epoll see it. */
#include "../check.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static int ready(int fd)
{
	struct pollfd poll_for = { fd, POLLIN, 0 };
	/* An event must be visible at once. */
	int n = poll(&poll_for, 1, 0);
	NEED(n >= 0);
	return n;
}

/* Waits until it can be read: a signal by another thread or process may take a moment. */
static int becomes_ready(int fd)
{
	struct pollfd poll_for = { fd, POLLIN, 0 };
	return poll(&poll_for, 1, 10000);
}

static struct signalfd_siginfo take(int fd)
{
	struct signalfd_siginfo info;
	memset(&info, 0, sizeof info);
	CHECK_EQ(read(fd, &info, sizeof info), sizeof info);
	return info;
}

static void *send_later(void *self)
{
	(void)self;
	usleep(20000);
	kill(getpid(), SIGUSR1);
	return NULL;
}

int main(void)
{
	sigset_t set, other, none;
	struct signalfd_siginfo info, many[4];
	union sigval value = { .sival_int = 77 };
	struct itimerspec soon = { { 0, 0 }, { 0, 1000000 } };
	struct sigevent event = {
		.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 1, .sigev_value.sival_int = 9
	};
	struct epoll_event wanted = { .events = EPOLLIN, .data.u32 = 5 }, came;
	struct iovec parts[2];
	pthread_t thread;
	timer_t timer;
	pid_t pid;
	int fd, ep, status;

	sigemptyset(&none);
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGRTMIN);
	sigaddset(&set, SIGRTMIN + 1);
	NEED(sigprocmask(SIG_BLOCK, &set, 0) == 0);

	CHECK_ERRNO(signalfd(-1, &set, 1), EINVAL);
	CHECK_ERRNO(signalfd(0, &set, 0), EINVAL);
	CHECK_ERRNO(signalfd(999, &set, 0), EBADF);
	CHECK_ERRNO(syscall(SYS_signalfd4, -1L, &set, 4L, 0L), EINVAL);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	NEED(fd >= 0);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_EQ(fcntl(fd, F_GETFL) & O_NONBLOCK, O_NONBLOCK);
	CHECK_ERRNO(read(fd, &info, sizeof info), EAGAIN);
	CHECK_ERRNO(read(fd, &info, sizeof info - 1), EINVAL);
	CHECK_ERRNO(write(fd, &info, sizeof info), EINVAL);
	CHECK_EQ(ready(fd), 0);

	/* kill */
	raise(SIGUSR1);
	CHECK_EQ(ready(fd), 1);
	kill(getpid(), SIGUSR2);
	info = take(fd);
	CHECK_EQ(info.ssi_signo, SIGUSR1);
	CHECK_EQ(info.ssi_pid, getpid());
	CHECK_EQ(info.ssi_uid, getuid());
	CHECK_EQ(ready(fd), 1);
	info = take(fd);
	CHECK_EQ(info.ssi_signo, SIGUSR2);
	CHECK_EQ(info.ssi_code, SI_USER);
	CHECK_EQ(ready(fd), 0);

	/* Several at once, in order, with their values. */
	for (int i = 0; i < 3; i++) {
		value.sival_int = 70 + i;
		CHECK_EQ(sigqueue(getpid(), SIGRTMIN, value), 0);
	}
	CHECK_EQ(read(fd, many, sizeof many), 3 * sizeof *many);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(many[i].ssi_signo, SIGRTMIN);
		CHECK_EQ(many[i].ssi_code, SI_QUEUE);
		CHECK_EQ(many[i].ssi_int, 70 + i);
		CHECK_EQ(many[i].ssi_pid, getpid());
	}
	CHECK_ERRNO(read(fd, &info, sizeof info), EAGAIN);
	value.sival_int = 1;
	CHECK_EQ(sigqueue(getpid(), SIGRTMIN, value), 0);
	parts[0].iov_base = &info, parts[0].iov_len = sizeof info;
	CHECK_EQ(readv(fd, parts, 1), sizeof info);
	CHECK_EQ(info.ssi_int, 1);

	/* A signal that goes another way can no longer be read. */
	raise(SIGUSR1);
	CHECK_EQ(ready(fd), 1);
	CHECK_EQ(sigwaitinfo(&set, NULL), SIGUSR1);
	CHECK_EQ(ready(fd), 0);
	raise(SIGUSR1);
	CHECK_EQ(ready(fd), 1);
	signal(SIGUSR1, SIG_IGN);
	CHECK_EQ(ready(fd), 0);
	signal(SIGUSR1, SIG_DFL);

	/* Another set. */
	sigemptyset(&other);
	sigaddset(&other, SIGUSR2);
	raise(SIGUSR1);
	CHECK_EQ(signalfd(fd, &other, 0), fd);
	CHECK_EQ(ready(fd), 0);
	CHECK_EQ(signalfd(fd, &set, 0), fd);
	CHECK_EQ(ready(fd), 1);
	CHECK_EQ(take(fd).ssi_signo, SIGUSR1);

	/* A timer; epoll. */
	ep = epoll_create1(0);
	NEED(ep >= 0);
	CHECK_EQ(epoll_ctl(ep, EPOLL_CTL_ADD, fd, &wanted), 0);
	CHECK_EQ(epoll_wait(ep, &came, 1, 0), 0);
	NEED(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0);
	CHECK_EQ(timer_settime(timer, 0, &soon, NULL), 0);
	CHECK_EQ(epoll_wait(ep, &came, 1, 10000), 1);
	CHECK_EQ(came.data.u32, 5);
	info = take(fd);
	CHECK_EQ(info.ssi_signo, SIGRTMIN + 1);
	CHECK_EQ(info.ssi_code, SI_TIMER);
	CHECK_EQ(info.ssi_int, 9);
	CHECK_EQ(epoll_wait(ep, &came, 1, 0), 0);
	timer_delete(timer);

	/* A child: it has the descriptor too, and reads its own signals. */
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		raise(SIGUSR2);
		CHECK_EQ(becomes_ready(fd), 1);
		info = take(fd);
		CHECK_EQ(info.ssi_signo, SIGUSR2);
		CHECK_EQ(info.ssi_pid, getpid());
		fflush(stdout);
		_exit(check_failures ? 1 : 3);
	}
	CHECK_EQ(becomes_ready(fd), 1);
	while (read(fd, &info, sizeof info) < 0 && errno == EAGAIN)
		usleep(1000);
	CHECK_EQ(info.ssi_signo, SIGCHLD);
	CHECK_EQ(info.ssi_code, CLD_EXITED);
	CHECK_EQ(info.ssi_pid, pid);
	CHECK_EQ(info.ssi_status, 3);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(ready(fd), 0);

	/* A read that waits, and one that a handler interrupts. */
	CHECK_EQ(fcntl(fd, F_SETFL, 0), 0);
	NEED(pthread_create(&thread, NULL, send_later, NULL) == 0);
	CHECK_EQ(take(fd).ssi_signo, SIGUSR1);
	pthread_join(thread, NULL);

	close(ep);
	close(fd);
	raise(SIGUSR1);
	CHECK_EQ(sigtimedwait(&set, NULL, &(struct timespec){ 0, 0 }), SIGUSR1);
	return check_done();
}
