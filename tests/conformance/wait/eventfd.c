/* eventfd: counters, semaphores, limits. */
#include "check.h"

#include <poll.h>
#include <stdint.h>
#include <sys/eventfd.h>

int main(void)
{
	uint64_t value = 5;
	int fd = eventfd(3, EFD_NONBLOCK | EFD_CLOEXEC), semaphore;

	NEED(fd >= 0);
	CHECK_EQ(write(fd, &value, 8), 8);
	CHECK_EQ(read(fd, &value, 8), 8);
	CHECK_EQ(value, 8);
	CHECK_ERRNO(read(fd, &value, 8), EAGAIN);
	CHECK_EQ(poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, 0), 0);
	value = UINT64_MAX - 1;
	CHECK_EQ(write(fd, &value, 8), 8);
	value = 1;
	CHECK_ERRNO(write(fd, &value, 8), EAGAIN);
	value = UINT64_MAX;
	CHECK_ERRNO(write(fd, &value, 8), EINVAL);
	CHECK_ERRNO(read(fd, &value, 4), EINVAL);
	CHECK_ERRNO(write(fd, &value, 4), EINVAL);

	NEED((semaphore = eventfd(2, EFD_SEMAPHORE | EFD_NONBLOCK)) >= 0);
	for (int i = 0; i < 2; i++) {
		CHECK_EQ(read(semaphore, &value, 8), 8);
		CHECK_EQ(value, 1);
	}
	CHECK_ERRNO(read(semaphore, &value, 8), EAGAIN);
	CHECK_EQ(eventfd_write(semaphore, 4), 0);
	CHECK_EQ(eventfd_read(semaphore, &value), 0);
	CHECK_EQ(value, 1);
	CHECK_ERRNO(eventfd(0, 1 << 25), EINVAL);
	return check_done();
}
