/* POSIX message queues: names, modes, order, limits, blocking and timed calls, poll, notification,
 * what a child has of them. */
#include "../check.h"
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static char name[64], buffer[64];

static mqd_t fresh(long count, long size, int flags)
{
	struct mq_attr attr = { .mq_maxmsg = count, .mq_msgsize = size };
	mqd_t queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR | flags, 0600, &attr);

	NEED(queue != (mqd_t)-1);
	return queue;
}

static void done(mqd_t queue)
{
	CHECK_EQ(mq_unlink(name), 0);
	CHECK_EQ(mq_close(queue), 0);
}

static void names(void)
{
	struct mq_attr attr = { .mq_maxmsg = 4, .mq_msgsize = 16 }, bad;
	char longest[300] = "/";
	mqd_t queue, reader, writer;
	unsigned priority;

	CHECK_ERRNO(mq_open(name, O_RDWR), ENOENT);
	CHECK_ERRNO(mq_unlink(name), ENOENT);
	CHECK_ERRNO(mq_open("/", O_RDWR), ENOENT);
	CHECK_ERRNO(mq_open("/a/b", O_RDWR | O_CREAT, 0600, &attr), EACCES);
	memset(longest + 1, 'x', 256);
	CHECK_ERRNO(mq_open(longest, O_RDWR | O_CREAT, 0600, &attr), ENAMETOOLONG);
	bad = attr;
	bad.mq_maxmsg = 0;
	CHECK_ERRNO(mq_open(name, O_RDWR | O_CREAT, 0600, &bad), EINVAL);
	bad = attr;
	bad.mq_msgsize = -1;
	CHECK_ERRNO(mq_open(name, O_RDWR | O_CREAT, 0600, &bad), EINVAL);

	queue = fresh(4, 16, 0);
	CHECK(fcntl(queue, F_GETFD) & FD_CLOEXEC);
	CHECK_ERRNO(mq_open(name, O_RDWR | O_CREAT | O_EXCL, 0600, &attr), EEXIST);
	reader = mq_open(name, O_RDONLY);
	writer = mq_open(name, O_WRONLY | O_CREAT, 0600, 0);
	NEED(reader != (mqd_t)-1 && writer != (mqd_t)-1);
	CHECK_ERRNO(mq_send(reader, "x", 1, 0), EBADF);
	CHECK_ERRNO(mq_receive(writer, buffer, sizeof buffer, 0), EBADF);
	CHECK_ERRNO(mq_send(1000, "x", 1, 0), EBADF);
	CHECK_ERRNO(mq_receive(STDOUT_FILENO, buffer, sizeof buffer, 0), EBADF);
	CHECK_EQ(mq_send(writer, "hello", 5, 7), 0);
	CHECK_EQ(mq_unlink(name), 0);
	CHECK_ERRNO(mq_open(name, O_RDWR), ENOENT);
	/* The name is free again, and the old queue is still there. */
	done(fresh(1, 1, 0));
	CHECK_EQ(mq_receive(reader, buffer, sizeof buffer, &priority), 5);
	CHECK_EQ(priority, 7);
	CHECK(memcmp(buffer, "hello", 5) == 0);
	mq_close(reader);
	mq_close(writer);
	mq_close(queue);
	CHECK_ERRNO(mq_close(queue), EBADF);
	if (geteuid() != 0) {
		queue = mq_open(name, O_RDWR | O_CREAT, 0400, &attr);
		NEED(queue != (mqd_t)-1);
		CHECK_ERRNO(mq_open(name, O_RDWR), EACCES);
		done(queue);
	}
}

static void order(void)
{
	static const unsigned priorities[] = { 3, 1, 3, 0, 32767, 1 };
	static const char expected[] = "402153";
	mqd_t queue = fresh(6, 8, 0);
	struct mq_attr attr = { 0 };
	unsigned priority = 0;
	char text[8];
	int i;

	for (i = 0; i < 6; i++) {
		text[0] = (char)('0' + i);
		CHECK_EQ(mq_send(queue, text, 1, priorities[i]), 0);
	}
	CHECK_ERRNO(mq_send(queue, text, 9, 0), EMSGSIZE);
	CHECK_ERRNO(mq_send(queue, text, 1, 32768), EINVAL);
	CHECK_EQ(mq_getattr(queue, &attr), 0);
	CHECK_EQ(attr.mq_maxmsg, 6);
	CHECK_EQ(attr.mq_msgsize, 8);
	CHECK_EQ(attr.mq_curmsgs, 6);
	CHECK_EQ(attr.mq_flags, 0);
	CHECK_ERRNO(mq_receive(queue, buffer, 7, &priority), EMSGSIZE);
	for (i = 0; i < 6; i++) {
		CHECK_EQ(mq_receive(queue, buffer, sizeof buffer, &priority), 1);
		CHECK_EQ(buffer[0], expected[i]);
		CHECK_EQ(priority, priorities[buffer[0] - '0']);
	}
	/* A message without anything in it is one. */
	CHECK_EQ(mq_send(queue, "", 0, 0), 0);
	CHECK_EQ(mq_receive(queue, buffer, sizeof buffer, &priority), 0);
	done(queue);
}

static void flags(void)
{
	mqd_t queue = fresh(1, 8, O_NONBLOCK), other;
	struct mq_attr attr = { 0 }, old = { 0 };
	struct timespec past = { 1, 0 }, wrong = { 1, 1000000000 };
	struct timespec before, after, soon;

	CHECK_ERRNO(mq_receive(queue, buffer, sizeof buffer, 0), EAGAIN);
	CHECK_EQ(mq_send(queue, "a", 1, 0), 0);
	CHECK_ERRNO(mq_send(queue, "b", 1, 0), EAGAIN);
	other = mq_open(name, O_RDWR);
	NEED(other != (mqd_t)-1);
	CHECK_ERRNO(mq_timedsend(other, "b", 1, 0, &past), ETIMEDOUT);
	CHECK_ERRNO(mq_timedsend(other, "b", 1, 0, &wrong), EINVAL);
	CHECK_EQ(mq_receive(queue, buffer, sizeof buffer, 0), 1);
	CHECK_ERRNO(mq_timedreceive(other, buffer, sizeof buffer, 0, &past), ETIMEDOUT);
	clock_gettime(CLOCK_REALTIME, &soon);
	clock_gettime(CLOCK_MONOTONIC, &before);
	soon.tv_nsec += 30000000;
	if (soon.tv_nsec >= 1000000000) {
		soon.tv_nsec -= 1000000000;
		soon.tv_sec++;
	}
	CHECK_ERRNO(mq_timedreceive(other, buffer, sizeof buffer, 0, &soon), ETIMEDOUT);
	clock_gettime(CLOCK_MONOTONIC, &after);
	CHECK((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 >= 25);
	CHECK_EQ(mq_getattr(queue, &old), 0);
	CHECK_EQ(old.mq_flags, O_NONBLOCK);
	CHECK_EQ(mq_setattr(queue, &attr, &old), 0);
	CHECK_EQ(old.mq_flags, O_NONBLOCK);
	CHECK_EQ(mq_getattr(queue, &old), 0);
	CHECK_EQ(old.mq_flags, 0);
	CHECK_EQ(fcntl(queue, F_GETFL) & O_NONBLOCK, 0);
	attr.mq_flags = O_NONBLOCK;
	CHECK_EQ(mq_setattr(queue, &attr, 0), 0);
	CHECK(fcntl(queue, F_GETFL) & O_NONBLOCK);
	attr.mq_flags = O_APPEND;
	CHECK_ERRNO(mq_setattr(queue, &attr, 0), EINVAL);
	mq_close(other);
	done(queue);
}

static int ready(int fd)
{
	struct pollfd poll_for = { .fd = fd, .events = POLLIN | POLLOUT };

	return poll(&poll_for, 1, 0) >= 0 ? poll_for.revents : -1;
}

static void polls(void)
{
	mqd_t queue = fresh(3, 8, 0), late;
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 5 }, got = { 0 };
	int epoll = epoll_create1(0), i;

	NEED(epoll >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, queue, &event) == 0);
	for (i = 0; i < 3; i++) {
		CHECK_EQ(ready(queue), POLLOUT);
		CHECK_EQ(epoll_wait(epoll, &got, 1, 0), 0);
		CHECK_EQ(mq_send(queue, "a", 1, 0), 0);
		CHECK_EQ(ready(queue), POLLIN | POLLOUT);
		CHECK_EQ(epoll_wait(epoll, &got, 1, 0), 1);
		CHECK_EQ(got.data.u32, 5);
		CHECK_EQ(mq_send(queue, "b", 1, 0), 0);
		CHECK_EQ(mq_send(queue, "c", 1, 0), 0);
		CHECK_EQ(ready(queue), POLLIN);
		late = mq_open(name, O_RDWR);
		CHECK_EQ(ready(late), POLLIN);
		CHECK_EQ(mq_receive(late, buffer, sizeof buffer, 0), 1);
		CHECK_EQ(ready(queue), POLLIN | POLLOUT);
		CHECK_EQ(ready(late), POLLIN | POLLOUT);
		CHECK_EQ(mq_receive(late, buffer, sizeof buffer, 0), 1);
		CHECK_EQ(mq_receive(queue, buffer, sizeof buffer, 0), 1);
		CHECK_EQ(ready(late), POLLOUT);
		mq_close(late);
	}
	close(epoll);
	done(queue);
}

static volatile int told, value, code, sender;

static void notice(int sig, siginfo_t *info, void *context)
{
	(void)context;
	told += sig == SIGUSR1;
	value = info->si_value.sival_int;
	code = info->si_code;
	sender = info->si_pid;
}

static void notification(void)
{
	struct sigaction sa = { .sa_sigaction = notice, .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 77 };
	struct sigevent none = { .sigev_notify = SIGEV_NONE };
	mqd_t queue = fresh(3, 8, 0), other = mq_open(name, O_RDWR);
	pid_t pid;
	int status;

	NEED(other != (mqd_t)-1 && sigaction(SIGUSR1, &sa, 0) == 0);
	CHECK_EQ(mq_notify(queue, &event), 0);
	CHECK_ERRNO(mq_notify(other, &event), EBUSY);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		CHECK_ERRNO(mq_notify(queue, &none), EBUSY);
		/* Not its own registration. */
		mq_notify(queue, 0);
		CHECK_ERRNO(mq_notify(queue, &none), EBUSY);
		CHECK_EQ(mq_send(queue, "a", 1, 0), 0);
		fflush(stdout);
		_exit(check_failures ? 1 : 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(told, 1);
	CHECK_EQ(value, 77);
	CHECK_EQ(code, SI_MESGQ);
	CHECK_EQ(sender, pid);
	/* Once, and not while there are messages. */
	CHECK_EQ(mq_notify(queue, &event), 0);
	CHECK_EQ(mq_send(other, "b", 1, 0), 0);
	CHECK_EQ(told, 1);
	CHECK_EQ(mq_receive(queue, buffer, sizeof buffer, 0), 1);
	CHECK_EQ(mq_receive(queue, buffer, sizeof buffer, 0), 1);
	CHECK_EQ(mq_send(other, "c", 1, 0), 0);
	CHECK_EQ(told, 2);
	CHECK_EQ(mq_receive(queue, buffer, sizeof buffer, 0), 1);
	CHECK_EQ(mq_send(other, "d", 1, 0), 0);
	CHECK_EQ(told, 2);
	CHECK_EQ(mq_receive(queue, buffer, sizeof buffer, 0), 1);
	/* Taken back; and gone with the descriptor. */
	CHECK_EQ(mq_notify(queue, &event), 0);
	CHECK_EQ(mq_notify(queue, 0), 0);
	CHECK_EQ(mq_send(other, "e", 1, 0), 0);
	CHECK_EQ(mq_receive(other, buffer, sizeof buffer, 0), 1);
	CHECK_EQ(mq_notify(queue, &event), 0);
	mq_close(queue);
	CHECK_EQ(mq_send(other, "f", 1, 0), 0);
	CHECK_EQ(told, 2);
	/* No signal is one that is not sent. */
	event.sigev_signo = 0;
	CHECK_EQ(mq_receive(other, buffer, sizeof buffer, 0), 1);
	CHECK_EQ(mq_notify(other, &event), 0);
	CHECK_ERRNO(mq_notify(other, &none), EBUSY);
	CHECK_EQ(mq_send(other, "g", 1, 0), 0);
	CHECK_EQ(told, 2);
	CHECK_EQ(mq_notify(other, &none), 0);
	CHECK_EQ(mq_notify(other, 0), 0);
	event.sigev_signo = 65;
	CHECK_ERRNO(mq_notify(other, &event), EINVAL);
	event.sigev_notify = 9;
	CHECK_ERRNO(mq_notify(other, &event), EINVAL);
	done(other);
}

static void *receiver(void *argument)
{
	unsigned priority = 0;
	long sum = 0;

	for (;;) {
		char text[8];
		ssize_t size = mq_receive(*(mqd_t *)argument, text, sizeof text, &priority);
		if (size != 1)
			return (void *)-1L;
		if (text[0] == 0)
			return (void *)sum;
		sum += text[0];
	}
}

/* Threads and a child, through a queue that is nearly always full or empty. */
static void waits(void)
{
	mqd_t queue = fresh(2, 8, 0);
	pthread_t threads[2];
	long sum = 0, sent = 0;
	void *result;
	pid_t pid;
	int i, status;

	for (i = 0; i < 2; i++)
		NEED(pthread_create(&threads[i], 0, receiver, &queue) == 0);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0) {
		for (i = 0; i < 500; i++)
			if (mq_send(queue, "\1", 1, 1) != 0)
				_exit(1);
		_exit(0);
	}
	for (i = 0; i < 500; i++) {
		CHECK_EQ(mq_send(queue, "\2", 1, 2), 0);
		sent += 2;
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	sent += 500;
	for (i = 0; i < 2; i++)
		CHECK_EQ(mq_send(queue, "\0", 1, 0), 0);
	for (i = 0; i < 2; i++) {
		NEED(pthread_join(threads[i], &result) == 0);
		sum += (long)result;
	}
	CHECK_EQ(sum, sent);
	done(queue);
}

static void alarmed(int sig)
{
	(void)sig;
}

static void interrupted(void)
{
	struct sigaction sa = { .sa_handler = alarmed };
	struct itimerval timer = { .it_value = { 0, 3000 }, .it_interval = { 0, 20000 } }, none = { 0 };
	mqd_t queue = fresh(1, 8, 0);

	NEED(sigaction(SIGALRM, &sa, 0) == 0 && setitimer(ITIMER_REAL, &timer, 0) == 0);
	CHECK_ERRNO(mq_receive(queue, buffer, sizeof buffer, 0), EINTR);
	CHECK_EQ(mq_send(queue, "a", 1, 0), 0);
	CHECK_ERRNO(mq_send(queue, "a", 1, 0), EINTR);
	setitimer(ITIMER_REAL, &none, 0);
	done(queue);
}

int main(void)
{
	mqd_t probe;

	snprintf(name, sizeof name, "/lind-check-%ld-%ld", (long)getpid(), (long)time(0));
	probe = mq_open(name, O_CREAT | O_RDWR, 0600, 0);
	if (probe == (mqd_t)-1 && (errno == ENOSYS || errno == EMFILE)) {
		printf("no message queues here: %s\n", strerror(errno));
		return 77;
	}
	NEED(probe != (mqd_t)-1);
	done(probe);
	names();
	order();
	flags();
	polls();
	notification();
	waits();
	interrupted();
	return check_done();
}
