/* Calls that a handler interrupts: made again with SA_RESTART where Linux makes them again, EINTR
 * elsewhere. */
#include "../check.h"
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/select.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile sig_atomic_t seen;
static pthread_t main_thread;
static int ends[2], pair[2];

static void count(int sig)
{
	(void)sig;
	seen++;
}

static void *interrupt(void *then)
{
	int *fd = then;
	for (int i = 0; i < 3; i++) {
		nanosleep(&(struct timespec){ 0, 15000000 }, 0);
		pthread_kill(main_thread, SIGUSR1);
	}
	nanosleep(&(struct timespec){ 0, 15000000 }, 0);
	if (fd && write(*fd, "x", 1) != 1)
		abort();
	return 0;
}

static void set(int flags)
{
	struct sigaction sa = { .sa_handler = count, .sa_flags = flags };
	sigaction(SIGUSR1, &sa, 0);
}

static pthread_t begin(int *then)
{
	pthread_t thread;
	seen = 0;
	NEED(pthread_create(&thread, 0, interrupt, then) == 0);
	return thread;
}

static void end(pthread_t thread)
{
	/* The rest of the signals must not come at the next call. */
	sigset_t block, old;
	sigemptyset(&block);
	sigaddset(&block, SIGUSR1);
	pthread_join(thread, 0);
	pthread_sigmask(SIG_BLOCK, &block, &old);
	pthread_sigmask(SIG_SETMASK, &old, 0);
}

int main(void)
{
	struct timespec second = { 5, 0 }, left;
	struct timeval timeout = { 5, 0 };
	struct epoll_event event;
	pthread_t thread;
	char byte;

	main_thread = pthread_self();
	NEED(pipe(ends) == 0);
	NEED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);

	set(SA_RESTART);
	thread = begin(&ends[1]);
	CHECK_EQ(read(ends[0], &byte, 1), 1);
	CHECK_EQ(seen, 3);
	end(thread);
	thread = begin(&pair[1]);
	CHECK_EQ(recv(pair[0], &byte, 1, 0), 1);
	CHECK_EQ(seen, 3);
	end(thread);
	thread = begin(0);
	CHECK_ERRNO(poll(&(struct pollfd){ .fd = ends[0], .events = POLLIN }, 1, 5000), EINTR);
	end(thread);
	thread = begin(0);
	CHECK_ERRNO(nanosleep(&second, &left), EINTR);
	CHECK(left.tv_sec == 4 && left.tv_nsec > 0);
	end(thread);
	thread = begin(0);
	CHECK_ERRNO(select(0, 0, 0, 0, &timeout), EINTR);
	end(thread);
	thread = begin(0);
	CHECK_ERRNO(epoll_wait(epoll_create1(0), &event, 1, 5000), EINTR);
	end(thread);
	thread = begin(0);
	CHECK_ERRNO(pause(), EINTR);
	end(thread);
	NEED(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof timeout) == 0);
	thread = begin(0);
	CHECK_ERRNO(recv(pair[0], &byte, 1, 0), EINTR);
	end(thread);

	set(0);
	thread = begin(0);
	CHECK_ERRNO(read(ends[0], &byte, 1), EINTR);
	CHECK_EQ(seen, 1);
	end(thread);

	/* An ignored signal interrupts nothing. */
	signal(SIGUSR1, SIG_IGN);
	thread = begin(&ends[1]);
	CHECK_EQ(read(ends[0], &byte, 1), 1);
	end(thread);
	return check_done();
}
