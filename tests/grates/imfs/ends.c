/* Calls that name a descriptor of a child race with the child's end: they read the child's file or
 * fail, and never read another's. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <lind/raw.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 300

static uint64_t child;  /* 0: stop */
static int wrong;

static struct lind_arg mine(uint64_t value)
{
	return (struct lind_arg){ value, lind_self() };
}

static void *hammer(void *unused)
{
	char buffer[8];
	uint64_t whose;

	while ((whose = __atomic_load_n(&child, __ATOMIC_ACQUIRE))) {
		struct lind_arg none = mine(0), theirs = { 3, whose };
		int64_t r = lind_call(
		    SYS_pread64, lind_self(), theirs, lind_mine(buffer), mine(sizeof buffer), none, none, none);

		if (r >= 0 && (r != 8 || memcmp(buffer, "the file", 8)))
			__atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
		lind_call(SYS_dup, whose, theirs, none, none, none, none, none);
	}
	return unused;
}

int main(void)
{
	pthread_t threads[3];
	int fd = open("e", O_RDWR | O_CREAT | O_EXCL, 0600);
	bool started = false;

	if (fd != 3 || write(fd, "the file", 8) != 8)
		return 2;
	for (int round = 0; round < ROUNDS; round++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		if (pid < 0)
			return 3;
		__atomic_store_n(&child, (uint64_t)pid, __ATOMIC_RELEASE);
		for (int i = 0; !started && i < 3; i++)
			if (pthread_create(&threads[i], NULL, hammer, NULL))
				return 4;
		started = true;
		waitpid(pid, NULL, 0);
	}
	__atomic_store_n(&child, 0, __ATOMIC_RELEASE);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	if (wrong)
		printf("%d times something else\n", wrong);
	return wrong != 0;
}
