/* getpid and its family, users and groups. */
#include "check.h"

#include <sys/syscall.h>
#include <sys/types.h>

int main(void)
{
	uid_t r, e, s;
	gid_t groups[256];
	int count;

	CHECK(getpid() > 0);
	CHECK_EQ(syscall(SYS_getpid), getpid());
	CHECK_EQ(syscall(SYS_gettid), getpid());
	CHECK(getppid() >= 0);
	CHECK_EQ(getpgid(0), getpgrp());
	CHECK_EQ(getpgid(getpid()), getpgrp());
	CHECK(getsid(0) >= 0);
	CHECK_ERRNO(getpgid(999999999), ESRCH);

	NEED(getresuid(&r, &e, &s) == 0);
	CHECK_EQ(r, getuid());
	CHECK_EQ(e, geteuid());
	NEED(getresgid(&r, &e, &s) == 0);
	CHECK_EQ(r, getgid());
	CHECK_EQ(e, getegid());
	count = getgroups(0, NULL);
	CHECK(count >= 0 && count <= 256);
	CHECK_EQ(getgroups(256, groups), count);
	if (count > 1)
		CHECK_ERRNO(getgroups(count - 1, groups), EINVAL);
	CHECK_ERRNO(getgroups(-1, groups), EINVAL);

	/* A process may set the ids that it already has. */
	CHECK_EQ(setuid(getuid()), 0);
	CHECK_EQ(setgid(getgid()), 0);
	CHECK_EQ(setresuid(-1, -1, -1), 0);
	CHECK_EQ(setreuid(-1, geteuid()), 0);
	CHECK_EQ(setregid(-1, getegid()), 0);
	CHECK_ERRNO(setuid(-1), EINVAL);
	if (geteuid() != 0)
		CHECK_ERRNO(setuid(0), EPERM);
	return check_done();
}
