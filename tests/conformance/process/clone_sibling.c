/* clone(2) with CLONE_PARENT: a child of the caller's parent. And unshare(2). */
#include "../check.h"
#include <sched.h>
#include <signal.h>
#include <sys/utsname.h>
#include <sys/wait.h>

static char stack[128 << 10] __attribute__((aligned(16)));

static int tells_parent(void *expected)
{
	return getppid() == *(pid_t *)expected ? 42 : 1;
}

/* A child of ours makes one that is ours too, and tells its number. */
static void check_sibling(int more)
{
	pid_t here = getpid(), middle, sibling = 0;
	int p[2], status;

	NEED(pipe(p) == 0);
	if (!(middle = fork())) {
		sibling = clone(tells_parent, stack + sizeof stack, CLONE_PARENT | more | SIGCHLD, &here);
		CHECK(sibling > 0);
		CHECK_ERRNO(waitpid(sibling, &status, 0), ECHILD);
		CHECK_EQ(write(p[1], &sibling, sizeof sibling), (ssize_t)sizeof sibling);
		_exit(check_done());
	}
	CHECK_EQ(read(p[0], &sibling, sizeof sibling), (ssize_t)sizeof sibling);
	CHECK_EQ(waitpid(sibling, &status, 0), sibling);
	CHECK_EQ(status, 42 << 8);
	CHECK_EQ(waitpid(middle, &status, 0), middle);
	CHECK_EQ(status, 0);
	CHECK_ERRNO(waitpid(-1, &status, 0), ECHILD);
	close(p[0]), close(p[1]);
}

static void check_unshare(void)
{
	CHECK_EQ(unshare(0), 0);
	CHECK_EQ(unshare(CLONE_FILES), 0);
	CHECK_EQ(unshare(CLONE_FS | CLONE_SYSVSEM), 0);
	CHECK_EQ(unshare(CLONE_THREAD | CLONE_SIGHAND | CLONE_VM), 0);
	CHECK_ERRNO(unshare(SIGCHLD), EINVAL);
	CHECK_ERRNO(unshare(CLONE_PARENT), EINVAL);
}

static int renames(void *unused)
{
	(void)unused;
	return sethostname("cloned", 6) != 0;
}

/* The name of the machine that a child makes its own is nobody else's. */
static void check_names(void)
{
	struct utsname before, now;
	pid_t child;
	int status;

	CHECK_EQ(uname(&before), 0);
	if (!(child = fork())) {
		if (geteuid()) {
			CHECK_ERRNO(unshare(CLONE_NEWUTS), EPERM);
			CHECK_ERRNO(clone(renames, stack + sizeof stack, CLONE_NEWUTS | SIGCHLD, NULL), EPERM);
			_exit(check_done());
		}
		if (unshare(CLONE_NEWUTS))
			_exit(errno == EPERM ? 77 : 1);
		CHECK_EQ(uname(&now), 0);
		CHECK_STR(now.nodename, before.nodename);
		CHECK_EQ(sethostname("apart", 5), 0);
		CHECK((child = clone(renames, stack + sizeof stack, CLONE_NEWUTS | SIGCHLD, NULL)) > 0);
		CHECK_EQ(waitpid(child, &status, 0), child);
		CHECK_EQ(status, 0);
		CHECK_EQ(uname(&now), 0);
		CHECK_STR(now.nodename, "apart");
		_exit(check_done());
	}
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(status == 0 || status == 77 << 8);
	CHECK_EQ(uname(&now), 0);
	CHECK_STR(now.nodename, before.nodename);
}

int main(void)
{
	check_sibling(0);
	check_sibling(CLONE_VM | CLONE_VFORK);
	check_unshare();
	check_names();
	return check_done();
}
