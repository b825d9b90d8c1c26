/* futex as far as one thread can take it: a value that changed, time, nobody to wake. */
#include "check.h"

#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>

#define WAIT        0
#define WAKE        1
#define REQUEUE     3
#define PRIVATE     128
#define WAIT_BITSET 9
#define WAKE_BITSET 10

static long futex(uint32_t *word, long op, long value, const struct timespec *timeout, long mask)
{
	return syscall(SYS_futex, word, op, value, timeout, 0L, mask);
}

static long long now(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (long long)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

int main(void)
{
	_Alignas(8) uint32_t words[2] = { 7, 0 };
	struct timespec ts;
	long long start = now();

	CHECK_ERRNO(futex(words, WAIT | PRIVATE, 8, NULL, 0), EAGAIN);
	CHECK_ERRNO(futex(words, WAIT, 8, NULL, 0), EAGAIN);
	memset(&ts, 0xff, sizeof ts);
	ts.tv_sec = 0, ts.tv_nsec = 20000000;
	CHECK_ERRNO(futex(words, WAIT | PRIVATE, 7, &ts, 0), ETIMEDOUT);
	CHECK(now() - start >= 20000000);
	/* The bitset form takes a time of the clock. */
	start = now() + 10000000;
	ts.tv_sec = (time_t)(start / 1000000000), ts.tv_nsec = (long)(start % 1000000000);
	CHECK_ERRNO(futex(words, WAIT_BITSET | PRIVATE, 7, &ts, -1), ETIMEDOUT);
	CHECK(now() >= start);
	ts.tv_sec = 1;
	CHECK_ERRNO(futex(words, WAIT_BITSET | PRIVATE, 7, &ts, -1), ETIMEDOUT);

	CHECK_EQ(futex(words, WAKE | PRIVATE, 1, NULL, 0), 0);
	CHECK_EQ(futex(words, WAKE, 0x7fffffff, NULL, 0), 0);
	CHECK_EQ(futex(words, WAKE_BITSET | PRIVATE, 1, NULL, 1), 0);
	CHECK_EQ(syscall(SYS_futex, words, (long)(REQUEUE | PRIVATE), 1L, 1L, words + 1, 0L), 0);
	CHECK_ERRNO(futex(words, WAIT_BITSET | PRIVATE, 7, NULL, 0), EINVAL);
	CHECK_ERRNO(futex((uint32_t *)((char *)words + 1), WAIT | PRIVATE, 7, NULL, 0), EINVAL);
	CHECK_ERRNO(futex((uint32_t *)16, WAIT | PRIVATE, 7, NULL, 0), EFAULT);
	ts.tv_sec = 0, ts.tv_nsec = 1000000000;
	CHECK_ERRNO(futex(words, WAIT | PRIVATE, 7, &ts, 0), EINVAL);
	CHECK_ERRNO(futex(words, 100, 7, NULL, 0), ENOSYS);
	return check_done();
}
