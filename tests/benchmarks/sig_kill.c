/* From SIGKILL to a child until its end has been waited for. The child computes, waits in a system call, calls the system again
 * and again, copies memory, or throws (longjmp) again and again. The worst of all is what the parameter 100 says; 50 is the mean.
 * native: -static
 */
#include "bench.h"

#include <errno.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define KILLS 20

static volatile unsigned spun;

static void spin(void)
{
	for (;;)
		spun++;
}

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
	size_t size = 16 << 20;
	char *from = calloc(1, size), *to = malloc(size);

	while (from && to) {
		memcpy(to, from, size);
		spun += to[spun % size];
	}
}

static jmp_buf jump;

static void throw_it(unsigned how)
{
	longjmp(jump, how | 1);
}

static void (*volatile thrower)(unsigned) = throw_it;

static void throw(void)
{
	for (;;) {
		if (setjmp(jump))
			spun++;
		else
			thrower(spun);
	}
}

static const struct {
	const char *name;
	void (*act)(void);
} children[] = {
	{ "Kill spin", spin },         { "Kill read", wait_in_read }, { "Kill pause", wait_for_signal },
	{ "Kill sleep", sleep_long },  { "Kill poll", wait_in_poll }, { "Kill calls", call },
	{ "Kill copy", copy },         { "Kill throw", throw },
};

int main(void)
{
	for (size_t i = 0; i < sizeof children / sizeof children[0]; i++) {
		double total = 0, worst = 0;

		for (int n = 0; n < KILLS; n++) {
			int status;
			pid_t pid = fork();

			if (pid < 0 && errno == ENOSYS)
				bench_skip("fork: Function not implemented");
			if (pid < 0)
				bench_die("fork");
			if (pid == 0) {
				children[i].act();
				_exit(1);
			}
			nanosleep(&(struct timespec){ .tv_nsec = 3000000 + n * 100000 }, 0);
			long long start = gettimens();

			if (kill(pid, SIGKILL) || waitpid(pid, &status, 0) != pid)
				bench_die("kill");
			double took = (double)(gettimens() - start);

			bench_expect("the signal", (unsigned)status, SIGKILL);
			total += took;
			worst = took > worst ? took : worst;
		}
		emit_result(children[i].name, 50, KILLS, total / KILLS);
		emit_result(children[i].name, 100, KILLS, worst);
	}
	return 0;
}
