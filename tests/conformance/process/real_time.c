/* Tests the privileges of root, as far as it has the capability: policies in real time with their
 * priorities, a better nice, limits raised again, memory locked beyond the limit. Others are
 * refused. */
#include "../check.h"
#include <sched.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define RESET_ON_FORK 0x40000000
#define USER          1000

#define CAP_IPC_LOCK     14
#define CAP_SYS_NICE     23
#define CAP_SYS_RESOURCE 24

static int has(int capability)
{
	uint32_t header[2] = { 0x20080522, 0 }, sets[6] = { 0 };

	return syscall(SYS_capget, header, sets) == 0 && (sets[0] >> capability & 1);
}

/* libc of cages and musl refuse what the call itself does. */
static long set(int policy, int priority)
{
	struct sched_param param = { .sched_priority = priority };
	return syscall(SYS_sched_setscheduler, 0L, (long)policy, &param);
}

static long policy(void)
{
	return syscall(SYS_sched_getscheduler, 0L);
}

static int priority(void)
{
	struct sched_param param = { .sched_priority = -1 };
	CHECK_EQ(syscall(SYS_sched_getparam, 0L, &param), 0);
	return param.sched_priority;
}

static void apart(void (*check)(void))
{
	int status = -1;
	pid_t pid = (fflush(stdout), fork());

	NEED(pid >= 0);
	if (pid == 0) {
		check_failures = 0;
		check();
		fflush(stdout);
		_exit(check_failures != 0);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
}

static void inherits(void)
{
	CHECK_EQ(policy(), SCHED_RR);
	CHECK_EQ(priority(), 7);
}

static void begins_anew(void)
{
	CHECK_EQ(policy(), SCHED_OTHER);
	CHECK_EQ(priority(), 0);
}

static void in_real_time(void)
{
	struct timespec slice = { 9, 9 };

	CHECK_ERRNO(set(SCHED_FIFO, 0), EINVAL);
	CHECK_ERRNO(set(SCHED_FIFO, 100), EINVAL);
	CHECK_ERRNO(set(SCHED_OTHER, 1), EINVAL);
	CHECK_EQ(set(SCHED_FIFO, 1), 0);
	CHECK_EQ(policy(), SCHED_FIFO);
	CHECK_EQ(priority(), 1);
	CHECK_EQ(syscall(SYS_sched_setparam, 0L, &(struct sched_param){ .sched_priority = 9 }), 0);
	CHECK_EQ(priority(), 9);
	CHECK_ERRNO(syscall(SYS_sched_setparam, 0L, &(struct sched_param){ .sched_priority = 0 }), EINVAL);
	CHECK_EQ(set(SCHED_RR, 7), 0);
	CHECK_EQ(sched_rr_get_interval(0, &slice), 0);
	CHECK(slice.tv_sec == 0 && slice.tv_nsec > 0);
	apart(inherits);
	CHECK_EQ(set(SCHED_RR | RESET_ON_FORK, 7), 0);
	CHECK_EQ(policy(), SCHED_RR | RESET_ON_FORK);
	apart(begins_anew);
	CHECK_EQ(set(SCHED_OTHER, 0), 0);
	CHECK_EQ(priority(), 0);
}

static void better_nice(void)
{
	CHECK_EQ(setpriority(PRIO_PROCESS, 0, 10), 0);
	CHECK_EQ(setpriority(PRIO_PROCESS, 0, 5), 0);
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), 5);
	CHECK_EQ(setpriority(PRIO_PROCESS, 0, -5), 0);
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), -5);
}

static void raises(void)
{
	struct rlimit before, now;

	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
	now = (struct rlimit){ before.rlim_max / 4, before.rlim_max / 2 };
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
	now.rlim_max = before.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &now), 0);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &now), 0);
	CHECK_EQ(now.rlim_max, before.rlim_max);
}

static void locks(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	NEED(page != MAP_FAILED);
	CHECK_EQ(setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ 0, 0 }), 0);
	CHECK_EQ(mlock(page, 4096), 0);
	CHECK_EQ(munlock(page, 4096), 0);
}

static void user(void)
{
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct rlimit limit;

	NEED(page != MAP_FAILED && setrlimit(RLIMIT_MEMLOCK, &(struct rlimit){ 0, 0 }) == 0);
	CHECK_EQ(setrlimit(RLIMIT_RTPRIO, &(struct rlimit){ 0, 0 }), 0);
	CHECK_EQ(setrlimit(RLIMIT_NICE, &(struct rlimit){ 0, 0 }), 0);
	NEED(setuid(USER) == 0);
	CHECK_ERRNO(set(SCHED_FIFO, 1), EPERM);
	CHECK_EQ(setpriority(PRIO_PROCESS, 0, 10), 0);
	CHECK_ERRNO(setpriority(PRIO_PROCESS, 0, 5), EACCES);
	CHECK_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_cur = --limit.rlim_max;
	CHECK_EQ(setrlimit(RLIMIT_NOFILE, &limit), 0);
	limit.rlim_max++;
	CHECK_ERRNO(setrlimit(RLIMIT_NOFILE, &limit), EPERM);
	CHECK_ERRNO(mlock(page, 4096), EPERM);
	/* Its parent is root's. */
	CHECK_ERRNO(setpriority(PRIO_PROCESS, (id_t)getppid(), 1), EPERM);
	CHECK_ERRNO(sched_setaffinity(getppid(), sizeof(cpu_set_t), &(cpu_set_t){ { 1 } }), EPERM);
}

int main(void)
{
	if (geteuid() != 0)
		check_skip("takes root");
	if (has(CAP_SYS_NICE)) {
		apart(in_real_time);
		apart(better_nice);
	}
	if (has(CAP_SYS_RESOURCE))
		apart(raises);
	if (has(CAP_IPC_LOCK))
		apart(locks);
	apart(user);
	return check_done();
}
