/* timerfd: one shot, interval, absolute, disarmed, non-blocking. */
#include "check.h"

#include <poll.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <time.h>

static struct itimerspec after_ms(long first, long interval)
{
	struct itimerspec spec;

	memset(&spec, 0xff, sizeof spec);
	spec.it_value.tv_sec = 0, spec.it_value.tv_nsec = first * 1000000;
	spec.it_interval.tv_sec = 0, spec.it_interval.tv_nsec = interval * 1000000;
	return spec;
}

int main(void)
{
	struct itimerspec spec = after_ms(10, 0), old;
	struct timespec now;
	uint64_t ticks = 0;
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);

	NEED(fd >= 0);
	CHECK_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
	CHECK_ERRNO(read(fd, &ticks, 8), EAGAIN);
	CHECK_EQ(timerfd_settime(fd, 0, &spec, NULL), 0);
	CHECK_EQ(timerfd_gettime(fd, &old), 0);
	CHECK(old.it_value.tv_sec == 0 && old.it_value.tv_nsec <= 10000000);
	CHECK_EQ(poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 5000), 1);
	CHECK_EQ(read(fd, &ticks, 8), 8);
	CHECK_EQ(ticks, 1);
	CHECK_ERRNO(read(fd, &ticks, 8), EAGAIN);
	CHECK_EQ(timerfd_gettime(fd, &old), 0);
	CHECK_EQ(old.it_value.tv_nsec, 0);

	/* Expirations are counted while nobody reads. */
	spec = after_ms(5, 5);
	CHECK_EQ(timerfd_settime(fd, 0, &spec, NULL), 0);
	CHECK_EQ(nanosleep(&(struct timespec){ .tv_nsec = 30000000 }, NULL), 0);
	CHECK_EQ(read(fd, &ticks, 8), 8);
	CHECK(ticks >= 5);
	spec = after_ms(0, 0);
	CHECK_EQ(timerfd_settime(fd, 0, &spec, &old), 0);
	CHECK_EQ(old.it_interval.tv_nsec, 5000000);
	CHECK_ERRNO(read(fd, &ticks, 8), EAGAIN);
	CHECK_ERRNO(read(fd, &ticks, 4), EINVAL);

	clock_gettime(CLOCK_MONOTONIC, &now);
	spec.it_value = now;
	CHECK_EQ(timerfd_settime(fd, TFD_TIMER_ABSTIME, &spec, NULL), 0);
	CHECK_EQ(poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 5000), 1);
	CHECK_EQ(read(fd, &ticks, 8), 8);

	CHECK_ERRNO(timerfd_create(1234, 0), EINVAL);
	CHECK_ERRNO(timerfd_create(CLOCK_MONOTONIC, 1), EINVAL);
	spec.it_value.tv_nsec = 1000000000;
	CHECK_ERRNO(timerfd_settime(fd, 0, &spec, NULL), EINVAL);
	CHECK_ERRNO(timerfd_settime(0x7fff, 0, &old, NULL), EBADF);
	close(fd);
	return check_done();
}
