/* Waiting in a handler, on behalf of the client. */
#include <errno.h>
#include <limits.h>
#include <lind/raw.h>
#include <time.h>

#define FUTEX_WAIT_PRIVATE_ 128u
#define FUTEX_WAKE_PRIVATE_ 129u

/* The kernel's struct timespec. */
struct time64 {
	int64_t sec, nsec;
};

int lind_wait(uint64_t client, const uint32_t *word, uint32_t value, const struct timespec *timeout)
{
	struct time64 left;
	struct lind_arg none = { 0, client };

	if (timeout)
		left = (struct time64){ timeout->tv_sec, timeout->tv_nsec };
	return (int)lind_call(SYS_futex, client, lind_mine(word), (struct lind_arg){ FUTEX_WAIT_PRIVATE_, client },
	    (struct lind_arg){ value, client }, timeout ? lind_mine(&left) : none, none, none);
}

void lind_wake(uint32_t *word)
{
	lind_import_syscall(SYS_futex, (uintptr_t)word, FUTEX_WAKE_PRIVATE_, INT_MAX, 0, 0, 0);
}
