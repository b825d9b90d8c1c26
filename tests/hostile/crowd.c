/*
 * crowd threads CAGES THREADS: cages that each start threads until they may not. crowd mappings
 * CAGES: cages that each split a mapping until they may not, and one that gives a few back and
 * takes them again. crowd compile PROGRAM: threads until the limit, then a child runs a program; 9
 * if no process can be had to compile it. Meanwhile a cage that wants little goes on: it forks and
 * starts threads. "still here" is the last word.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SPAN    (256u << 20)
#define PAGE    4096
#define SECONDS 3

static char *span;
static size_t top;

static void *waits(void *unused)
{
	pause();
	return unused;
}

static void *ends(void *unused)
{
	return unused;
}

static int start_threads(int most)
{
	pthread_attr_t attr;
	pthread_t thread;
	int n = 0;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	while (n < most && !pthread_create(&thread, &attr, waits, NULL))
		n++;
	return n;
}

static void split(void)
{
	for (; top < SPAN / PAGE; top += 2)
		if (mprotect(span + top * PAGE, PAGE, PROT_READ | PROT_WRITE))
			break;
}

static void squeeze(time_t end)
{
	while (time(NULL) < end) {
		for (int i = 0; i < 1 + rand() % 12 && top >= 2; i++) {
			top -= 2;
			mprotect(span + top * PAGE, PAGE, PROT_NONE);
		}
		split();
	}
}

static pid_t cage_of_threads(int threads)
{
	pid_t child = fork();

	if (child == 0) {
		start_threads(threads);
		pause();
		_exit(0);
	}
	return child;
}

static pid_t cage_of_mappings(int squeezes)
{
	pid_t child = fork();

	if (child == 0) {
		span = mmap(NULL, SPAN, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (span == MAP_FAILED)
			_exit(3);
		split();
		if (squeezes)
			squeeze(time(NULL) + SECONDS);
		pause();
		_exit(0);
	}
	return child;
}

/* A cage that wants little: the number of refusals does not matter, as long as it gets the
 * errors. */
static void modest(int from)
{
	time_t end;
	long done = 0;
	char c;

	if (read(from, &c, 1) != 1)
		_exit(2);
	end = time(NULL) + SECONDS;
	while (time(NULL) < end) {
		pthread_t thread;
		pid_t child = fork();

		if (child == 0)
			_exit(0);
		if (child > 0)
			done += waitpid(child, NULL, 0) == child;
		if (!pthread_create(&thread, NULL, ends, NULL))
			done += !pthread_join(thread, NULL);
	}
	_exit(done ? 0 : 1);
}

static int after_compiling(char *program)
{
	int go[2], status;
	pid_t child;

	if (pipe(go) || (child = fork()) < 0)
		return 2;
	if (child == 0) {
		char c, *argv[] = { program, NULL };

		if (read(go[0], &c, 1) == 1)
			execv(program, argv);
		_exit(errno == EAGAIN ? 9 : 8);
	}
	start_threads(2000);
	if (write(go[1], "", 1) != 1 || waitpid(child, &status, 0) != child)
		return 2;
	printf("still here: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	fflush(stdout);
	_exit(0);
}

int main(int argc, char **argv)
{
	int cages = argc > 2 ? atoi(argv[2]) : 0, go[2], status, n = 0;
	pid_t *children, child;

	if (argc == 3 && !strcmp(argv[1], "compile"))
		return after_compiling(argv[2]);
	children = calloc((size_t)cages + 1, sizeof *children);
	if (!cages || !children || pipe(go) || (child = fork()) < 0)
		return 2;
	if (child == 0)
		modest(go[0]);
	for (int i = 0; i < cages; i++) {
		pid_t one = argc == 4 ? cage_of_threads(atoi(argv[3])) : cage_of_mappings(i + 1 == cages);

		if (one > 0)
			children[n++] = one;
	}
	sleep(1);
	if (write(go[1], "", 1) != 1 || waitpid(child, &status, 0) != child)
		return 2;
	for (int i = 0; i < n; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
	}
	printf("still here: %d\n", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
	return 0;
}
