/* getpriority, setpriority, personality, capget, and memory that cannot be locked. */
#include "check.h"

#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

/* A process that is nice already cannot get a better niceness. */
static int at_most(int niceness)
{
	return niceness < 19 ? niceness : 19;
}

int main(void)
{
	uint32_t header[2] = { 0x20080522, 0 }, data[6];
	int before, status;
	pid_t child;

	errno = 0;
	before = getpriority(PRIO_PROCESS, 0);
	CHECK_EQ(errno, 0);
	CHECK_EQ(setpriority(PRIO_PROCESS, 0, before + 3), 0);
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), at_most(before + 3));
	CHECK_EQ(getpriority(PRIO_PROCESS, getpid()), at_most(before + 3));
	CHECK_EQ(nice(2), at_most(before + 5));
	NEED((child = fork()) >= 0);
	if (!child)
		_exit(getpriority(PRIO_PROCESS, 0) == at_most(before + 5) ? 0 : 1);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK_EQ(status, 0);
	CHECK_EQ(setpriority(PRIO_PROCESS, getpid(), 100), 0);
	CHECK_EQ(getpriority(PRIO_PROCESS, 0), 19);
	CHECK_ERRNO(getpriority(PRIO_PROCESS, 999999), ESRCH);
	CHECK_ERRNO(getpriority(99, 0), EINVAL);
	CHECK_ERRNO(setpriority(PRIO_PGRP, 999999, 0), ESRCH);

	CHECK_EQ(personality(0xffffffff), 0);
	CHECK_EQ(personality(0), 0);

	CHECK_EQ(syscall(SYS_capget, header, NULL), 0);
	CHECK_EQ(syscall(SYS_capget, header, data), 0);
	header[0] = 1;
	CHECK_ERRNO(syscall(SYS_capget, header, data), EINVAL);
	CHECK_EQ(header[0], 0x20080522);
	header[1] = 999999;
	CHECK_ERRNO(syscall(SYS_capget, header, data), ESRCH);

	CHECK(mlock(data, sizeof data) == 0 || errno == EPERM || errno == ENOMEM);
	CHECK_EQ(munlock(data, sizeof data), 0);
	CHECK_EQ(munlockall(), 0);
	CHECK_ERRNO(mlockall(0), EINVAL);
	CHECK_ERRNO(mlockall(64), EINVAL);
	return check_done();
}
