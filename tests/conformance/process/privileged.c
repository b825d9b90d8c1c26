/* Tests that calls for the machine's administrator fail with EPERM for anybody else, not as calls
 * that do not exist. */
#define _GNU_SOURCE
#include "check.h"

#include <grp.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

int main(void)
{
	struct timespec time = { .tv_sec = 1700000000 };
	struct timeval then = { .tv_sec = 1700000000 };
	struct timex shift = { .modes = ADJ_OFFSET };

	if (!getuid()) {
		CHECK_EQ(setgroups(0, NULL), 0);
		CHECK_EQ(setresgid(65534, 65534, 65534), 0);
		CHECK_EQ(setresuid(65534, 65534, 65534), 0);
	}
	CHECK_ERRNO(syscall(SYS_chroot, "/"), EPERM);
	CHECK_ERRNO(syscall(SYS_mount, "none", "/", "tmpfs", 0L, NULL), EPERM);
	CHECK_ERRNO(syscall(SYS_umount2, "/", 0), EPERM);
	CHECK_ERRNO(syscall(SYS_pivot_root, "/", "/"), EPERM);
	CHECK_ERRNO(syscall(SYS_unshare, CLONE_NEWNS), EPERM);
	CHECK_ERRNO(syscall(SYS_swapon, "/", 0), EPERM);
	CHECK_ERRNO(syscall(SYS_swapoff, "/"), EPERM);
	CHECK_ERRNO(syscall(SYS_acct, NULL), EPERM);
	CHECK_ERRNO(syscall(SYS_vhangup), EPERM);
	CHECK_ERRNO(clock_settime(CLOCK_REALTIME, &time), EPERM);
	CHECK_ERRNO(settimeofday(&then, NULL), EPERM);
	CHECK_ERRNO(adjtimex(&shift), EPERM);
	return check_done();
}
