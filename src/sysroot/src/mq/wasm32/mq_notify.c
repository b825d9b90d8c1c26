/* By thread: it waits at one end of a pair of sockets. A message to the queue has the kernel put
 * the cookie into the other end, which only the kernel holds by then: if the registration goes,
 * that end closes, and the thread ends. Linux has a netlink socket for this. */
#include <errno.h>
#include <mqueue.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include "syscall.h"

#define WOKEN 1			/* what the kernel leaves in the cookie's last byte */

struct waiter {
	int end;
	void (*function)(union sigval);
	union sigval value;
};

static void *wait_and_call(void *argument)
{
	struct waiter w = *(struct waiter *)argument;
	char cookie[32];
	ssize_t n;

	free(argument);
	do n = recv(w.end, cookie, sizeof cookie, 0);
	while (n < 0 && errno == EINTR);
	close(w.end);
	if (n == sizeof cookie && cookie[sizeof cookie - 1] == WOKEN)
		w.function(w.value);
	return 0;
}

static int start(const struct sigevent *event, int end)
{
	struct waiter *w = malloc(sizeof *w);
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	if (!w)
		return ENOMEM;
	*w = (struct waiter){ end, event->sigev_notify_function, event->sigev_value };
	if (event->sigev_notify_attributes)
		attr = *event->sigev_notify_attributes;
	else
		pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	r = pthread_create(&thread, &attr, wait_and_call, w);
	if (r)
		free(w);
	return r;
}

int mq_notify(mqd_t queue, const struct sigevent *event)
{
	static const char cookie[32];
	int ends[2], r;

	if (!event || event->sigev_notify != SIGEV_THREAD)
		return syscall(SYS_mq_notify, queue, event);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
		return -1;
	struct sigevent asked = {
		.sigev_notify = SIGEV_THREAD, .sigev_signo = ends[1], .sigev_value.sival_ptr = (void *)cookie,
	};
	/* The thread is started first: a registration without a waiting thread could not be undone. */
	r = start(event, ends[0]);
	if (r) {
		close(ends[0]);
		errno = r == ENOMEM ? ENOMEM : EAGAIN;
		r = -1;
	} else {
		r = syscall(SYS_mq_notify, queue, &asked);
	}
	int error = errno;
	close(ends[1]);
	errno = error;
	return r;
}
