/* Calls that wait for signals: sigsuspend, pause, sigwait and its kin; the masks of ppoll, pselect,
 * epoll_pwait. */
#include "../check.h"
#include <poll.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t seen, masked;

static void note(int sig)
{
	sigset_t now;
	(void)sig;
	sigprocmask(SIG_BLOCK, 0, &now);
	masked = sigismember(&now, SIGUSR2);
	seen++;
}

static sigset_t block, none;

static void pend(int sig)
{
	seen = 0;
	masked = -1;
	CHECK_EQ(kill(getpid(), sig), 0);
	CHECK_EQ(seen, 0);
}

static void came(void)
{
	sigset_t now;
	CHECK_EQ(seen, 1);
	CHECK_EQ(masked, 0);
	sigprocmask(SIG_BLOCK, 0, &now);
	CHECK(sigismember(&now, SIGUSR1) && sigismember(&now, SIGUSR2));
}

int main(void)
{
	struct sigaction sa = { .sa_handler = note, .sa_flags = SA_RESTART };
	struct timespec second = { 5, 0 }, soon = { 0, 1000 };
	struct epoll_event event;
	siginfo_t info;
	sigset_t wait;
	fd_set in;
	int sig, ends[2], epoll;

	sigemptyset(&none);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	sigaddset(&block, SIGUSR2);
	sigaddset(&block, SIGRTMIN);
	NEED(sigaction(SIGUSR1, &sa, 0) == 0);
	NEED(sigprocmask(SIG_SETMASK, &block, 0) == 0);
	NEED(pipe(ends) == 0);

	pend(SIGUSR1);
	CHECK_ERRNO(sigsuspend(&none), EINTR);
	came();
	pend(SIGUSR1);
	CHECK_ERRNO(ppoll(0, 0, &second, &none), EINTR);
	came();
	pend(SIGUSR1);
	CHECK_ERRNO(pselect(0, 0, 0, 0, &second, &none), EINTR);
	came();
	epoll = epoll_create1(0);
	pend(SIGUSR1);
	CHECK_ERRNO(epoll_pwait(epoll, &event, 1, 5000, &none), EINTR);
	came();

	/* Something ready comes before a signal, which goes on waiting. */
	NEED(write(ends[1], "x", 1) == 1);
	pend(SIGUSR1);
	CHECK_EQ(ppoll(&(struct pollfd){ .fd = ends[0], .events = POLLIN }, 1, &second, &none), 1);
	CHECK_EQ(seen, 0);
	FD_ZERO(&in);
	FD_SET(ends[0], &in);
	CHECK_EQ(pselect(ends[0] + 1, &in, 0, 0, &second, &none), 1);
	CHECK_EQ(seen, 0);

	/* sigwait takes it. */
	sigemptyset(&wait);
	sigaddset(&wait, SIGUSR1);
	CHECK_EQ(sigwait(&wait, &sig), 0);
	CHECK_EQ(sig, SIGUSR1);
	CHECK_EQ(seen, 0);
	CHECK_ERRNO(sigtimedwait(&wait, &info, &soon), EAGAIN);
	CHECK_ERRNO(sigtimedwait(&wait, &info, &(struct timespec){ 0 }), EAGAIN);
	CHECK_ERRNO(sigtimedwait(&wait, &info, &(struct timespec){ .tv_nsec = 1000000000 }), EINVAL);
	for (int i = 1; i <= 3; i++)
		CHECK_EQ(sigqueue(getpid(), SIGRTMIN, (union sigval){ .sival_int = i }), 0);
	sigaddset(&wait, SIGRTMIN);
	for (int i = 1; i <= 3; i++) {
		CHECK_EQ(sigwaitinfo(&wait, &info), SIGRTMIN);
		CHECK_EQ(info.si_value.sival_int, i);
		CHECK_EQ(info.si_code, SI_QUEUE);
		CHECK_EQ(info.si_pid, getpid());
	}

	/* Another signal's handler ends the wait. */
	sigemptyset(&wait);
	sigaddset(&wait, SIGRTMIN);
	sigprocmask(SIG_SETMASK, &none, 0);
	seen = 0;
	sa.sa_handler = SIG_IGN;
	CHECK_EQ(sigaction(SIGUSR2, &sa, 0), 0);
	kill(getpid(), SIGUSR2);
	CHECK_ERRNO(sigtimedwait(&wait, &info, &soon), EAGAIN);
	return check_done();
}
