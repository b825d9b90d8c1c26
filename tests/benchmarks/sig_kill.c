/* From SIGKILL to a child until its end has been waited for. The child computes, waits in a system
 * call, calls the system again and again, copies memory, or throws (longjmp) again and again.
 * Means, and the longest of all. native: -static
 */
#include "bench.h"
#include "../conformance/signal/busy.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILLS 20

static void wait_in_read(void)
{
	int ends[2];
	char byte;

	if (pipe(ends) == 0)
		for (;;)
			(void)!read(ends[0], &byte, 1);
}

static void wait_for_signal(void)
{
	for (;;)
		pause();
}

static void sleep_long(void)
{
	for (;;)
		nanosleep(&(struct timespec){ .tv_sec = 1000 }, 0);
}

static void wait_in_poll(void)
{
	for (;;)
		poll(0, 0, -1);
}

static void call(void)
{
	for (;;)
		(void)!write(-1, "", 1);
}

static void copy(void)
{
	copy_memory((size_t)16 << 20, 0);
}

/* Children with the same name are one row: what a child waits in makes little difference. */
static const struct {
	const char *name;
	void (*act)(void);
} children[] = {
	{ "Kill waiting", wait_in_read },
	{ "Kill waiting", wait_for_signal },
	{ "Kill waiting", sleep_long },
	{ "Kill waiting", wait_in_poll },
	{ "Kill calling", call },
	{ "Kill spinning", spin },
	{ "Kill copying", copy },
	{ "Kill throwing", throw },
};

#define CHILDREN (sizeof children / sizeof children[0])

/* Nanoseconds to kill a child that has acted for a while. */
static double kill_one(void (*act)(void), int n)
{
	int status;
	pid_t pid = fork();

	if (pid < 0 && errno == ENOSYS)
		bench_skip("fork: Function not implemented");
	if (pid < 0)
		bench_die("fork");
	if (pid == 0) {
		act();
		_exit(1);
	}
	nanosleep(&(struct timespec){ .tv_nsec = 3000000 + n * 100000 }, 0);
	long long start = gettimens();

	if (kill(pid, SIGKILL) || waitpid(pid, &status, 0) != pid)
		bench_die("kill");
	double took = (double)(gettimens() - start);

	bench_expect("the signal", (unsigned)status, SIGKILL);
	return took;
}

int main(void)
{
	double worst = 0;

	for (size_t first = 0, end; first < CHILDREN; first = end) {
		double total = 0;

		for (end = first; end < CHILDREN && !strcmp(children[end].name, children[first].name); end++)
			for (int n = 0; n < KILLS; n++) {
				double took = kill_one(children[end].act, n);

				total += took;
				worst = took > worst ? took : worst;
			}
		emit_result(
		    children[first].name, 0, KILLS * (long)(end - first), total / (double)(KILLS * (end - first)));
	}
	emit_result("Kill, the longest", 0, KILLS * (long)CHILDREN, worst);
	return 0;
}
