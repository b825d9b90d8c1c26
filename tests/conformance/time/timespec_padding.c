/* Every call that takes a timespec, with all bits of the padding set. */
#include "check.h"

#include <poll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <time.h>

static struct timespec dirty(time_t sec, long nsec)
{
	union {
		struct timespec ts;
		unsigned char bytes[sizeof(struct timespec)];
	} u;

	memset(u.bytes, 0xff, sizeof u.bytes);
	u.ts.tv_sec = sec;
	u.ts.tv_nsec = nsec;
	return u.ts;
}

int main(void)
{
	struct timespec ts, pair[2];
	struct itimerspec timer;
	unsigned word = 1;
	fd_set set;
	int fd = check_file("f", "x"), tfd = timerfd_create(CLOCK_REALTIME, 0);

	memset(&ts, 0xff, sizeof ts);
	ts = dirty(0, 1000);
	CHECK_EQ(nanosleep(&ts, NULL), 0);
	CHECK_EQ(clock_nanosleep(CLOCK_REALTIME, 0, &ts, NULL), 0);
	CHECK_ERRNO(syscall(SYS_futex, &word, 0L, 1L, &ts, 0L, 0L), ETIMEDOUT);
	CHECK_EQ(ppoll(NULL, 0, &ts, NULL), 0);
	FD_ZERO(&set);
	CHECK_EQ(pselect(1, &set, NULL, NULL, &ts, NULL), 0);
	pair[0] = dirty(5, 6), pair[1] = dirty(7, 8);
	CHECK_EQ(futimens(fd, pair), 0);
	timer.it_value = dirty(0, 1000), timer.it_interval = dirty(0, 0);
	CHECK_EQ(timerfd_settime(tfd, 0, &timer, NULL), 0);
	CHECK_EQ(poll(&(struct pollfd){ tfd, POLLIN, 0 }, 1, 5000), 1);
	close(fd);
	CHECK_EQ(unlink("f"), 0);
	return check_done();
}
