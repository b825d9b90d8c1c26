/* membarrier(2): a private barrier takes a registration, which fork hands on and exec does not. */
#include "../check.h"
#include <sys/syscall.h>
#include <sys/wait.h>

#define QUERY    0L
#define GLOBAL   1L
#define PRIVATE  8L
#define REGISTER 16L

static long membarrier(long command, long flags)
{
	return syscall(SYS_membarrier, command, flags, 0L);
}

int main(int argc, char **argv)
{
	int status = -1;
	pid_t pid;
	long known = membarrier(QUERY, 0);

	if (known < 0 || !(known & PRIVATE))
		check_skip("membarrier is not there");
	CHECK_ERRNO(membarrier(PRIVATE, 0), EPERM);
	if (argc > 1)
		return check_done();
	CHECK_ERRNO(membarrier(QUERY, 77), EINVAL);
	CHECK_ERRNO(membarrier(1 << 30, 0), EINVAL);
	CHECK_EQ(membarrier(GLOBAL, 0), 0);
	CHECK_EQ(membarrier(REGISTER, 0), 0);
	CHECK_EQ(membarrier(REGISTER, 0), 0);
	CHECK_EQ(membarrier(PRIVATE, 0), 0);
	NEED((pid = fork()) >= 0);
	if (pid == 0) {
		CHECK_EQ(membarrier(PRIVATE, 0), 0);
		if (check_failures)
			_exit(1);
		execl(argv[0], argv[0], "again", NULL);
		_exit(2);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	return check_done();
}
