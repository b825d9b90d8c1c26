/* Tests that the resources of children count when somebody has waited for them, and not where
 * nobody can: SIGCHLD is ignored, or SA_NOCLDWAIT is set. */
#include "../check.h"
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

static void work(void)
{
	struct timespec used;

	do {
		for (volatile int i = 0; i < 10000; i++)
			;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
	} while (used.tv_sec == 0 && used.tv_nsec < 20000000);
}

static long long children(void)
{
	struct rusage usage;

	CHECK_EQ(getrusage(RUSAGE_CHILDREN, &usage), 0);
	return usage.ru_utime.tv_sec * 1000000LL + usage.ru_utime.tv_usec + usage.ru_stime.tv_sec * 1000000LL +
	    usage.ru_stime.tv_usec;
}

static void works_in_a_child(int waited)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		work();
		_exit(0);
	}
	if (waited)
		CHECK_EQ(waitpid(pid, NULL, 0), pid);
	else
		CHECK_ERRNO(waitpid(pid, NULL, 0), ECHILD);
}

int main(void)
{
	struct sigaction action = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDWAIT };
	long long after;

	signal(SIGCHLD, SIG_IGN);
	works_in_a_child(0);
	CHECK_EQ(children(), 0);
	NEED(sigaction(SIGCHLD, &action, NULL) == 0);
	works_in_a_child(0);
	CHECK_EQ(children(), 0);
	signal(SIGCHLD, SIG_DFL);
	works_in_a_child(1);
	after = children();
	CHECK(after >= 15000);
	signal(SIGCHLD, SIG_IGN);
	works_in_a_child(0);
	CHECK_EQ(children(), after);
	return check_done();
}
