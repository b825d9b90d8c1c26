/* sched_setaffinity and sched_getaffinity: a thread's own choice, which its children and threads
 * begin with. */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static cpu_set_t all, one, other;

static void has(cpu_set_t *want)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CHECK_EQ(sched_getaffinity(0, sizeof set, &set), 0);
	CHECK_EQ(CPU_COUNT(&set), CPU_COUNT(want));
	CHECK(CPU_EQUAL(&set, want));
}

static void *thread(void *unused)
{
	(void)unused;
	has(&one);
	CHECK_EQ(sched_setaffinity(0, sizeof other, &other), 0);
	has(&other);
	return 0;
}

int main(void)
{
	cpu_set_t none;
	pthread_t id;
	int first = 0, last = CPU_SETSIZE - 1, status = -1;

	CHECK_EQ(sched_getaffinity(0, sizeof all, &all), 0);
	while (!CPU_ISSET(first, &all))
		first++;
	while (!CPU_ISSET(last, &all))
		last--;
	CPU_ZERO(&none);
	CPU_ZERO(&one);
	CPU_ZERO(&other);
	CPU_SET(first, &one);
	CPU_SET(last, &other);
	CHECK_ERRNO(sched_setaffinity(0, sizeof none, &none), EINVAL);
	CHECK_ERRNO(sched_setaffinity(-1, sizeof one, &one), ESRCH);
	CHECK_ERRNO(syscall(SYS_sched_setaffinity, 0L, (long)sizeof one, 8L), EFAULT);
	CHECK_EQ(sched_setaffinity(getpid(), sizeof one, &one), 0);
	has(&one);
	NEED(pthread_create(&id, 0, thread, 0) == 0);
	pthread_join(id, 0);
	has(&one);

	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		has(&one);
		CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
		has(&all);
		_exit(check_done());
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	has(&one);
	CHECK_EQ(sched_setaffinity(0, sizeof all, &all), 0);
	has(&all);
	return check_done();
}
