/* clone(2) by its wrapper: a child with memory of its own that begins at a function, on a stack
 * that it is given. */
#include "../check.h"
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define SIZE (256 << 10)

static char *stack;
static int shared_by_nobody = 1;
static pid_t told, told_child;

static int begins(void *argument)
{
	int here;

	if ((char *)&here < stack || (char *)&here >= stack + SIZE)
		return 1;
	if (argument != &told)
		return 2;
	shared_by_nobody = 2;
	return 42;
}

static int knows_itself(void *argument)
{
	(void)argument;
	return told_child == getpid() ? 7 : 8;
}

static int forks(void *argument)
{
	int status = -1;
	pid_t pid = fork();

	if (pid == 0)
		_exit(*(int *)argument);
	return waitpid(pid, &status, 0) == pid && status == 9 << 8 ? 10 : 11;
}

static int killed(void *argument)
{
	(void)argument;
	raise(SIGKILL);
	return 0;
}

static int status_of(int (*function)(void *), void *argument, int flags)
{
	int status = -1;
	pid_t pid = clone(function, stack + SIZE, flags | SIGCHLD, argument, &told, NULL, &told_child);

	if (!CHECK(pid > 0))
		return -1;
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	if (flags & CLONE_PARENT_SETTID)
		CHECK_EQ(told, pid);
	return status;
}

int main(void)
{
	int nine = 9;

	stack = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(stack != MAP_FAILED);
	CHECK_EQ(status_of(begins, &told, 0), 42 << 8);
	CHECK_EQ(shared_by_nobody, 1);
	CHECK_EQ(status_of(begins, &told, CLONE_PARENT_SETTID), 42 << 8);
	CHECK_EQ(status_of(knows_itself, NULL, CLONE_CHILD_SETTID), 7 << 8);
	CHECK_EQ(told_child, 0);
	CHECK_EQ(status_of(forks, &nine, 0), 10 << 8);
	CHECK_EQ(status_of(killed, NULL, 0), SIGKILL);
	CHECK_EQ(status_of(begins, &told, CLONE_VM | CLONE_VFORK), 42 << 8);
	CHECK_EQ(shared_by_nobody, 2);
	CHECK_ERRNO(clone(begins, NULL, SIGCHLD, &told), EINVAL);
	CHECK_EQ(munmap(stack, SIZE), 0);
	return check_done();
}
