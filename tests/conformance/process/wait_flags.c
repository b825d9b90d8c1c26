/* Flags of wait4 and waitid that only Linux has: __WCLONE finds no ordinary child, __WALL does,
 * __WNOTHREAD those of the calling thread. */
#include "../check.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef __WNOTHREAD
#define __WNOTHREAD 0x20000000
#endif
#ifndef __WALL
#define __WALL 0x40000000
#endif
#ifndef __WCLONE
#define __WCLONE 0x80000000
#endif
#define PIDFD 3

static pid_t child, of_thread;

static pid_t exits(int code)
{
	pid_t pid = fork();

	if (!pid)
		_exit(code);
	return pid;
}

static void *elsewhere(void *unused)
{
	int status;

	CHECK_ERRNO(waitpid(child, &status, __WNOTHREAD | WNOHANG), ECHILD);
	CHECK_ERRNO(waitpid(-1, &status, __WNOTHREAD), ECHILD);
	of_thread = exits(5);
	CHECK_EQ(waitpid(of_thread, &status, __WNOTHREAD), of_thread);
	CHECK_EQ(WEXITSTATUS(status), 5);
	/* Left to the others when this thread has ended. */
	of_thread = exits(6);
	return unused;
}

int main(void)
{
	siginfo_t info = { 0 };
	pthread_t thread;
	int status, fd;

	child = exits(3);
	CHECK_EQ(waitid(P_PID, child, &info, WEXITED | WNOWAIT), 0);
	CHECK_EQ(info.si_status, 3);
	CHECK_ERRNO(waitpid(child, &status, WNOHANG | __WCLONE), ECHILD);
	CHECK_ERRNO(waitpid(-1, &status, __WCLONE), ECHILD);
	CHECK_ERRNO(waitid(P_ALL, 0, &info, WEXITED | WNOHANG | __WCLONE), ECHILD);
	NEED(pthread_create(&thread, NULL, elsewhere, NULL) == 0);
	NEED(pthread_join(thread, NULL) == 0);
	CHECK_EQ(waitid(P_PID, child, &info, WEXITED | WNOWAIT | __WNOTHREAD), 0);
	CHECK_EQ(waitpid(child, &status, __WNOTHREAD), child);
	CHECK_EQ(WEXITSTATUS(status), 3);
	CHECK_EQ(waitpid(of_thread, &status, 0), of_thread);
	CHECK_EQ(WEXITSTATUS(status), 6);
	child = exits(4);
	CHECK_EQ(waitpid(child, &status, __WALL | __WCLONE), child);
	CHECK_EQ(WEXITSTATUS(status), 4);
	CHECK_ERRNO(waitpid(-1, &status, __WALL), ECHILD);

	child = exits(7);
	fd = (int)syscall(SYS_pidfd_open, child, 0);
	NEED(fd >= 0);
	CHECK_EQ(waitid(PIDFD, (id_t)fd, &info, WEXITED), 0);
	CHECK_ERRNO(waitid(PIDFD, (id_t)fd, &info, WEXITED), ECHILD);
	CHECK_ERRNO(waitid(PIDFD, (id_t)-1, &info, WEXITED), EINVAL);
	CHECK_ERRNO(waitid(PIDFD, 0, &info, WEXITED), EBADF);
	CHECK_ERRNO(waitid(17, 0, &info, WEXITED), EINVAL);
	CHECK_ERRNO(waitpid(-1, &status, 1 << 20), EINVAL);
	return check_done();
}
