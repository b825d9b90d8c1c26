/*
 * Shared parts of the grates of this folder, which are written as grates for Lind are: nothing but
 * <lind_syscall.h> and POSIX. Each takes its own arguments and starts what follows them.
 */
#ifndef STYLE_H
#define STYLE_H

#include <errno.h>
#include <lind_syscall.h>
#include <semaphore.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ARGS \
	uint64_t a1, uint64_t c1, uint64_t a2, uint64_t c2, uint64_t a3, uint64_t c3, uint64_t a4, uint64_t c4, \
	    uint64_t a5, uint64_t c5, uint64_t a6, uint64_t c6
#define PASS          a1, c1, a2, c2, a3, c3, a4, c4, a5, c5, a6, c6
#define HANDLER(name) static int name(uint64_t grate, ARGS)

typedef int handler(uint64_t grate, ARGS);

/* The way in that the runtime looks for: `function` is what was registered. */
int pass_fptr_to_wt(uint64_t function, uint64_t grate, ARGS)
{
	if (!function)
		return -EINVAL;
	return ((handler *)(uintptr_t)function)(grate, PASS);
}

/* Sends a call on to whoever comes before this grate. */
#define FORWARD(nr) make_threei_call((nr), 0, (uint64_t)getpid(), c1, PASS, 0)

static inline void take(uint64_t target, uint64_t nr, uint64_t grate, const void *function)
{
	int r = register_handler(target, nr, grate, (uint64_t)(uintptr_t)function);

	if (r) {
		fprintf(stderr, "register_handler(%d, %d): %d\n", (int)target, (int)nr, r);
		_exit(3);
	}
}

/* Runs `program` in a child. `before` registers what the grate handles, in the child itself. */
static inline int run_registering_child(char **program, void (*before)(uint64_t child, uint64_t grate))
{
	pid_t grate = getpid(), child = fork();
	int status, last = 1;

	if (!child) {
		before((uint64_t)getpid(), (uint64_t)grate);
		execv(program[0], program);
		perror(program[0]);
		_exit(127);
	}
	if (child < 0) {
		perror("fork");
		return 1;
	}
	while (wait(&status) > 0)
		last = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	return last;
}

/* The same, but the grate registers while the child waits for it at a semaphore. */
static inline int run_registering_parent(char **program, void (*before)(uint64_t child, uint64_t grate))
{
	sem_t *ready = mmap(NULL, sizeof *ready, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	pid_t child;
	int status;

	if (ready == MAP_FAILED || sem_init(ready, 1, 0)) {
		perror("semaphore");
		return 1;
	}
	if (!(child = fork())) {
		sem_wait(ready);
		execv(program[0], program);
		perror(program[0]);
		_exit(127);
	}
	if (child < 0) {
		perror("fork");
		return 1;
	}
	before((uint64_t)child, (uint64_t)getpid());
	sem_post(ready);
	if (waitpid(child, &status, 0) != child)
		return 1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

#endif
