/* Tests what any process may ask about another that is not its child: how it is scheduled, and
 * where. */
#include "../check.h"
#include <sched.h>
#include <sys/resource.h>
#include <sys/wait.h>

static void asks_about(pid_t other)
{
	struct sched_param param = { .sched_priority = -1 };
	cpu_set_t own, its;

	CHECK_EQ(sched_getparam(other, &param), 0);
	CHECK_EQ(param.sched_priority, 0);
	CHECK_EQ(sched_getscheduler(other), SCHED_OTHER);
	CHECK_EQ(sched_getaffinity(0, sizeof own, &own), 0);
	CHECK_EQ(sched_getaffinity(other, sizeof its, &its), 0);
	CHECK(CPU_EQUAL(&own, &its));
	errno = 0;
	CHECK_EQ(getpriority(PRIO_PROCESS, (id_t)other), getpriority(PRIO_PROCESS, 0));
	CHECK_EQ(errno, 0);
	CHECK_EQ(getpgid(other), getpgrp());
	CHECK_EQ(getsid(other), getsid(0));
}

int main(void)
{
	int ends[2], status = -1;
	pid_t sibling, child;
	char byte;

	NEED(pipe(ends) == 0 && (sibling = fork()) >= 0);
	if (sibling == 0) {
		close(ends[1]);
		_exit(read(ends[0], &byte, 1) != 0);
	}
	NEED((child = fork()) >= 0);
	if (child == 0) {
		asks_about(getppid());
		asks_about(sibling);
		CHECK_ERRNO(sched_getscheduler(0x3fffffff), ESRCH);
		fflush(stdout);
		_exit(check_failures != 0);
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	close(ends[1]);
	CHECK_EQ(waitpid(sibling, &status, 0), sibling);
	return check_done();
}
