/* prctl(PR_SET_SECCOMP) with SECCOMP_MODE_STRICT: reading, writing and exit go on, any other call
 * is the end by SIGKILL. */
#include "../check.h"
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static int ends[2];

/* How a child ends that is confined and then does this. */
static int ended(void (*act)(void))
{
	int status = -1;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		if (prctl(PR_SET_SECCOMP, 1, 0, 0, 0))
			_exit(3);
		act();
		syscall(SYS_exit, 7L);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void nothing(void) {}

static void reads_and_writes(void)
{
	char byte;

	if (write(ends[1], "x", 1) != 1 || read(ends[0], &byte, 1) != 1 || byte != 'x' || write(-1, "", 1) != -1)
		syscall(SYS_exit, 1L);
}

static void opens(void)
{
	open("/", O_RDONLY);
}
static void asks(void)
{
	getppid();
}
static void asks_again(void)
{
	prctl(PR_GET_SECCOMP, 0, 0, 0, 0);
}
static void ends_all(void)
{
	syscall(SYS_exit_group, 0L);
}
static void unknown(void)
{
	syscall(4000L);
}

int main(void)
{
	NEED(pipe(ends) == 0);
	CHECK_ERRNO(prctl(PR_SET_SECCOMP, 5, 0, 0, 0), EINVAL);
	CHECK_EQ(ended(nothing), 7 << 8);
	CHECK_EQ(ended(reads_and_writes), 7 << 8);
	CHECK_EQ(ended(opens), SIGKILL);
	CHECK_EQ(ended(asks), SIGKILL);
	CHECK_EQ(ended(asks_again), SIGKILL);
	CHECK_EQ(ended(ends_all), SIGKILL);
	CHECK_EQ(ended(unknown), SIGKILL);
	CHECK_EQ(prctl(PR_GET_SECCOMP, 0, 0, 0, 0), 0);
	return check_done();
}
