/* poll and ppoll: readiness, ends, bad numbers, time. */
#include "check.h"

#include <poll.h>
#include <time.h>
#include <sys/resource.h>

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (long long)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

int main(void)
{
	static struct pollfd many[2000];
	struct pollfd fds[4];
	struct timespec ts;
	struct rlimit limit;
	long long start;
	char byte;
	int p[2], file = check_file("f", "x");

	NEED(pipe(p) == 0);
	fds[0] = (struct pollfd){ p[0], POLLIN, -1 };
	fds[1] = (struct pollfd){ p[1], POLLOUT, -1 };
	CHECK_EQ(poll(fds, 2, 0), 1);
	CHECK_EQ(fds[0].revents, 0);
	CHECK_EQ(fds[1].revents, POLLOUT);
	CHECK_EQ(write(p[1], "x", 1), 1);
	CHECK_EQ(poll(fds, 2, -1), 2);
	CHECK_EQ(fds[0].revents, POLLIN);
	CHECK_EQ(read(p[0], &byte, 1), 1);

	fds[2] = (struct pollfd){ 0x7fff, POLLIN, -1 };
	fds[3] = (struct pollfd){ -1, POLLIN, -1 };
	CHECK_EQ(poll(fds, 4, 0), 2);
	CHECK_EQ(fds[2].revents, POLLNVAL);
	CHECK_EQ(fds[3].revents, 0);
	fds[2].fd = file;
	fds[2].events = POLLIN | POLLOUT;
	CHECK_EQ(poll(fds + 2, 1, 0), 1);
	CHECK_EQ(fds[2].revents, POLLIN | POLLOUT);

	start = now();
	CHECK_EQ(poll(fds, 1, 30), 0);
	CHECK(now() - start >= 29);
	CHECK_EQ(poll(NULL, 0, 10), 0);
	memset(&ts, 0xff, sizeof ts);
	ts.tv_sec = 0, ts.tv_nsec = 20000000;
	start = now();
	CHECK_EQ(ppoll(fds, 1, &ts, NULL), 0);
	CHECK(now() - start >= 19);
	CHECK(ts.tv_sec == 0 && ts.tv_nsec == 20000000);
	ts.tv_nsec = 1000000000;
	CHECK_ERRNO(ppoll(fds, 1, &ts, NULL), EINVAL);

	close(p[1]);
	CHECK_EQ(poll(fds, 1, -1), 1);
	CHECK_EQ(fds[0].revents, POLLHUP);
	NEED(pipe(p + 0) == 0);
	close(p[0]);
	fds[0] = (struct pollfd){ p[1], POLLOUT, 0 };
	CHECK_EQ(poll(fds, 1, 0), 1);
	CHECK_EQ(fds[0].revents, POLLOUT | POLLERR);

	/* The same number many times, and more entries than descriptors may be open. */
	NEED(getrlimit(RLIMIT_NOFILE, &limit) == 0);
	for (int i = 0; i < 2000; i++)
		many[i] = (struct pollfd){ file, POLLIN, 0 };
	if (limit.rlim_cur >= 2000)
		CHECK_EQ(poll(many, 2000, 0), 2000);
	limit.rlim_cur = 100;
	NEED(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	CHECK_ERRNO(poll(many, 2000, 0), EINVAL);
	CHECK_EQ(poll(many, 100, 0), 100);
	close(file);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
