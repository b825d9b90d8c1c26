/* Policies of scheduling: which there are, who may have which, and who inherits them. */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#ifndef SCHED_RESET_ON_FORK
#define SCHED_RESET_ON_FORK 0x40000000
#endif

/* struct sched_attr, of which headers know as little as of its calls. */
struct attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint64_t clamps, beyond[8];
};

static int policy_of_thread;

static void *asks(void *unused)
{
	(void)unused;
	policy_of_thread = sched_getscheduler(0);
	return NULL;
}

static int ended(pid_t child)
{
	int status = -1;

	CHECK_EQ(waitpid(child, &status, 0), child);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void change(void)
{
	struct sched_param none = { 0 }, some = { .sched_priority = 1 }, came = { .sched_priority = 7 };

	CHECK_EQ(sched_getscheduler(0), SCHED_OTHER);
	CHECK_EQ(sched_getscheduler(getpid()), SCHED_OTHER);
	CHECK_EQ(sched_getparam(0, &came), 0);
	CHECK_EQ(came.sched_priority, 0);
	CHECK_EQ(sched_setparam(0, &none), 0);
	CHECK_ERRNO(sched_setparam(0, &some), EINVAL);
	CHECK_ERRNO(sched_setscheduler(0, SCHED_BATCH, &some), EINVAL);
	CHECK_ERRNO(sched_setscheduler(0, SCHED_FIFO, &none), EINVAL);
	some.sched_priority = 100;
	CHECK_ERRNO(sched_setscheduler(0, SCHED_FIFO, &some), EINVAL);
	some.sched_priority = -1;
	CHECK_ERRNO(sched_setscheduler(0, SCHED_RR, &some), EINVAL);
	CHECK_ERRNO(sched_setscheduler(0, 77, &none), EINVAL);
	CHECK_ERRNO(sched_setscheduler(0, -1, &none), EINVAL);
	CHECK_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0);
	CHECK_EQ(sched_getscheduler(0), SCHED_BATCH);
	CHECK_EQ(sched_setparam(0, &none), 0);
	CHECK_EQ(sched_getscheduler(0), SCHED_BATCH);
	CHECK_EQ(sched_setscheduler(0, SCHED_OTHER, &none), 0);
}

static void arguments(void)
{
	struct sched_param none = { 0 };

	CHECK_ERRNO(sched_getscheduler(-1), EINVAL);
	CHECK_ERRNO(sched_getscheduler(999999), ESRCH);
	CHECK_ERRNO(sched_getparam(-1, &none), EINVAL);
	CHECK_ERRNO(sched_getparam(999999, &none), ESRCH);
	CHECK_ERRNO(sched_setparam(999999, &none), ESRCH);
	CHECK_ERRNO(sched_setscheduler(-1, SCHED_OTHER, &none), EINVAL);
	CHECK_ERRNO(sched_setscheduler(999999, SCHED_OTHER, &none), ESRCH);
	CHECK_ERRNO(syscall(SYS_sched_getparam, 0L, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_sched_setscheduler, 0L, 0L, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_sched_getparam, 0L, 8L), EFAULT);
	CHECK_ERRNO(syscall(SYS_sched_setscheduler, 0L, 0L, 8L), EFAULT);
	CHECK_EQ(sched_get_priority_max(SCHED_OTHER), 0);
	CHECK_EQ(sched_get_priority_min(SCHED_BATCH), 0);
	CHECK_EQ(sched_get_priority_max(SCHED_IDLE), 0);
	CHECK_EQ(sched_get_priority_max(SCHED_RR), 99);
	CHECK_EQ(sched_get_priority_min(SCHED_RR), 1);
	CHECK_ERRNO(sched_get_priority_max(99), EINVAL);
	CHECK_ERRNO(sched_get_priority_min(-1), EINVAL);
}

static void inheritance(void)
{
	struct sched_param none = { 0 };
	pthread_t thread;
	pid_t child;
	int policy;

	CHECK_EQ(sched_setscheduler(0, SCHED_BATCH, &none), 0);
	NEED(pthread_create(&thread, NULL, asks, NULL) == 0);
	pthread_join(thread, NULL);
	CHECK_EQ(policy_of_thread, SCHED_BATCH);
	CHECK_EQ(pthread_getschedparam(pthread_self(), &policy, &none), 0);
	CHECK_EQ(policy, SCHED_BATCH);
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(sched_getscheduler(0));
	CHECK_EQ(ended(child), SCHED_BATCH);
	/* A process that asks for that cannot take it back. */
	CHECK_EQ(sched_setscheduler(0, SCHED_BATCH | SCHED_RESET_ON_FORK, &none), 0);
	CHECK_EQ(sched_getscheduler(0), SCHED_BATCH | SCHED_RESET_ON_FORK);
	CHECK_ERRNO(sched_setscheduler(0, SCHED_BATCH, &none), EPERM);
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(sched_getscheduler(0));
	CHECK_EQ(ended(child), SCHED_BATCH);
	/* Of a child. */
	NEED((child = fork()) >= 0);
	if (!child) {
		while (sched_getscheduler(0) != SCHED_IDLE)
			sched_yield();
		_exit(0);
	}
	CHECK_EQ(sched_setscheduler(child, SCHED_IDLE, &none), 0);
	CHECK_EQ(ended(child), 0);
}

static void by_attributes(void)
{
	struct attributes a = { .size = 48, .policy = SCHED_BATCH, .nice = 5 }, got;
	int nice = getpriority(PRIO_PROCESS, 0);

	a.nice = nice < 14 ? nice + 5 : 19;
	CHECK_EQ(syscall(SYS_sched_setattr, 0L, &a, 0L), 0);
	memset(&got, 0x55, sizeof got);
	CHECK_EQ(syscall(SYS_sched_getattr, 0L, &got, 48L, 0L), 0);
	CHECK_EQ(got.size, 48);
	CHECK_EQ(got.policy, SCHED_BATCH);
	CHECK_EQ(got.nice, a.nice);
	CHECK_EQ(got.priority, 0);
	CHECK_EQ(got.clamps, 0x5555555555555555);
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), a.nice);
	CHECK_EQ(sched_getscheduler(0), SCHED_BATCH);
	a.flags = 1;
	CHECK_EQ(syscall(SYS_sched_setattr, 0L, &a, 0L), 0);
	CHECK_EQ(sched_getscheduler(0), SCHED_BATCH | SCHED_RESET_ON_FORK);
	a.flags = 0x1000;
	CHECK_ERRNO(syscall(SYS_sched_setattr, 0L, &a, 0L), EINVAL);
	a.flags = 1;
	CHECK_ERRNO(syscall(SYS_sched_setattr, 0L, &a, 1L), EINVAL);
	CHECK_ERRNO(syscall(SYS_sched_setattr, -1L, &a, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_sched_setattr, 0L, 0L, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_sched_getattr, 0L, &got, 47L, 0L), EINVAL);
	CHECK_ERRNO(syscall(SYS_sched_getattr, 0L, &got, 48L, 1L), EINVAL);
	CHECK_ERRNO(syscall(SYS_sched_getattr, 0L, 0L, 48L, 0L), EINVAL);
	a.size = 47;
	CHECK_ERRNO(syscall(SYS_sched_setattr, 0L, &a, 0L), E2BIG);
	CHECK(a.size >= 48);
	a.size = sizeof a;
	a.beyond[6] = 1;
	CHECK_ERRNO(syscall(SYS_sched_setattr, 0L, &a, 0L), E2BIG);
	a = (struct attributes){ .size = 48, .policy = SCHED_FIFO, .flags = 1 };
	CHECK_ERRNO(syscall(SYS_sched_setattr, 0L, &a, 0L), EINVAL);
	a.policy = 6;
	CHECK_ERRNO(syscall(SYS_sched_setattr, 0L, &a, 0L), EINVAL);
}

/* Requests that need a privilege or a limit, from a process that has neither. */
static void refused(void)
{
	struct sched_param none = { 0 }, some = { .sched_priority = 1 };
	struct attributes a = {
		.size = 48, .policy = 6, .flags = 1, .runtime = 1000000, .deadline = 2000000, .period = 2000000
	};
	struct rlimit nice, real_time;

	CHECK_EQ(getrlimit(RLIMIT_NICE, &nice), 0);
	CHECK_EQ(getrlimit(RLIMIT_RTPRIO, &real_time), 0);
	if (nice.rlim_cur || real_time.rlim_cur)
		return;
	CHECK_ERRNO(sched_setscheduler(0, SCHED_FIFO | SCHED_RESET_ON_FORK, &some), EPERM);
	CHECK_ERRNO(sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &some), EPERM);
	CHECK_ERRNO(syscall(SYS_sched_setattr, 0L, &a, 0L), EPERM);
	a = (struct attributes){ .size = 48, .policy = SCHED_OTHER, .flags = 1, .nice = -20 };
	CHECK_ERRNO(syscall(SYS_sched_setattr, 0L, &a, 0L), EPERM);
	CHECK_EQ(sched_setscheduler(0, SCHED_IDLE | SCHED_RESET_ON_FORK, &none), 0);
	CHECK_EQ(sched_setscheduler(0, SCHED_IDLE | SCHED_RESET_ON_FORK, &none), 0);
	CHECK_EQ(sched_getscheduler(0), SCHED_IDLE | SCHED_RESET_ON_FORK);
	/* That is as nice as can be. */
	CHECK_ERRNO(sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &none), EPERM);
}

/* Sets of processors of other sizes than cpu_set_t. */
static void sizes(void)
{
	cpu_set_t usual;
	int last = CPU_SETSIZE - 1;

	CHECK_EQ(sched_getaffinity(0, sizeof usual, &usual), 0);
	while (last > 0 && !CPU_ISSET(last, &usual))
		last--;
	for (int more = 1; more <= 4096; more *= 4) {
		size_t size = CPU_ALLOC_SIZE(last + more);
		cpu_set_t *set = CPU_ALLOC(last + more);

		NEED(set);
		memset(set, 0xff, size);
		if (sched_getaffinity(0, size, set)) {
			/* The machine could have more than there are. */
			CHECK_EQ(errno, EINVAL);
			CHECK(size * 8 < CPU_SETSIZE);
		} else {
			CHECK_EQ(CPU_COUNT_S(size, set), CPU_COUNT(&usual));
			CHECK(CPU_ISSET_S(last, size, set));
			CHECK_EQ(sched_setaffinity(0, size, set), 0);
		}
		CPU_FREE(set);
	}
	CHECK_ERRNO(syscall(SYS_sched_getaffinity, 0L, 0L, &usual), EINVAL);
	CHECK_ERRNO(syscall(SYS_sched_getaffinity, 0L, 129L, &usual), EINVAL);
	CHECK_EQ(sched_setaffinity(0, sizeof usual, &usual), 0);
}

int main(void)
{
	pid_t child;

	/* Root may do anything. */
	if (geteuid() == 0)
		NEED(setuid(65534) == 0);
	arguments();
	sizes();
	change();
	/* Its settings cannot be taken back. */
	NEED((child = fork()) >= 0);
	if (!child) {
		by_attributes();
		fflush(stdout);
		_exit(check_failures);
	}
	CHECK_EQ(ended(child), 0);
	inheritance();
	refused();
	return check_done();
}
