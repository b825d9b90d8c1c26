/* Tests that a process shown as sleeping is in the call that it waits in, and that a signal
 * interrupts that call; and the name of a working directory that is gone. */
#include "check.h"

#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "slurp.h"

static const char *in(pid_t pid, const char *name)
{
	static char path[4][64];
	static int next;

	next = (next + 1) % 4;
	snprintf(path[next], sizeof path[next], "/proc/%d/%s", (int)pid, name);
	return path[next];
}

static void handler(int number)
{
	(void)number;
}

static _Noreturn void pauses(void)
{
	for (int i = 0; i < 20000; i++)
		(void)getppid();
	pause();
	_exit(0);
}

/* A process shown as sleeping is in the call that it waits in, and a signal interrupts that
 * call. */
static void check_sleepers(void)
{
	for (int round = 0; round < 20; round++) {
		pid_t child = fork();
		int ended = 0;

		if (!child) {
			signal(SIGUSR1, handler);
			pauses();
		}
		while (!strstr(slurp(in(child, "status")), "State:\tS"))
			;
		CHECK_EQ(kill(child, SIGUSR1), 0);
		for (int i = 0; i < 2000 && !ended; i++) {
			nanosleep(&(struct timespec){ 0, i ? 10000000 : 1000 }, NULL);
			ended = waitpid(child, NULL, WNOHANG) == child;
		}
		if (!ended)
			kill(child, SIGKILL), waitpid(child, NULL, 0);
		CHECK(ended);
	}
}

static void check_gone(void)
{
	char link[600], start[400];
	ssize_t n;

	NEED(getcwd(start, sizeof start) != NULL);
	NEED(mkdir("gone", 0700) == 0 && chdir("gone") == 0 && rmdir("../gone") == 0);
	CHECK((n = readlink("/proc/self/cwd", link, sizeof link - 1)) > 0);
	link[n > 0 ? n : 0] = 0;
	CHECK(n > 15 && !strcmp(link + n - 15, "/gone (deleted)"));
	CHECK_EQ(chdir(start), 0);
}

int main(void)
{
	if (access("/proc/self/stat", R_OK))
		check_skip("no /proc here");
	check_sleepers();
	check_gone();
	return check_done();
}
