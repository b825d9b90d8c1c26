/* Tests the memory that a program begins with: initialised variables have their values and the
 * others are zero, in every process that runs it, whatever becomes of the pages in another. */
#include "check.h"
#include "values.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE   4096
#define WORDS  16384
#define PAGES  (WORDS * 4 / PAGE)
#define VALUES V4096(0), V4096(4096), V4096(8192), V4096(12288)

static volatile unsigned table[WORDS] __attribute__((aligned(PAGE))) = { VALUES };
static const volatile unsigned constants[WORDS] = { VALUES };
/* Mostly zero, and not in the file that way on every system. */
static volatile unsigned char sparse[40 * PAGE] = { 1, [20 * PAGE] = 2, [40 * PAGE - 1] = 3 };
static volatile unsigned char zeroes[100 * PAGE];
static volatile unsigned last = 77;
static _Thread_local volatile unsigned own = 99, own_zero;

static char *self;
extern char **environ;

/* Which of the variables, from 1, is not as it was; `but` is a page of the table that may be. */
static int differs(int but)
{
	for (int i = 0; i < WORDS; i++)
		if ((table[i] != V(i) && i * 4 / PAGE != but) || constants[i] != V(i))
			return 1;
	for (int i = 0; i < (int)sizeof sparse; i++)
		if (sparse[i] != (i == 0 ? 1 : i == 20 * PAGE ? 2 : i == 40 * PAGE - 1 ? 3 : 0))
			return 2;
	for (int i = 0; i < (int)sizeof zeroes; i++)
		if (zeroes[i])
			return 3;
	return last != 77 ? 4 : own != 99 || own_zero ? 5 : 0;
}

static int waited(pid_t pid)
{
	int status;

	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		return -1;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static volatile unsigned *page(int n)
{
	return table + n * (PAGE / 4);
}

/* Changes a page of the table, and a bit of everything else. */
static void spoil(int n)
{
	for (int i = 0; i < PAGE / 4; i++)
		page(n)[i] = 0;
	sparse[n * PAGE] = 9;
	zeroes[n * PAGE + 5] = 9;
	last = own = own_zero = 9;
}

static void mend(int n)
{
	for (int i = 0; i < PAGE / 4; i++)
		page(n)[i] = V(n * (PAGE / 4) + i);
	sparse[n * PAGE] = n == 0 ? 1 : 0;
	zeroes[n * PAGE + 5] = 0;
	last = 77;
	own = 99;
	own_zero = 0;
}

static void *in_thread(void *unused)
{
	int bad = differs(-1);

	(void)unused;
	own = 5;
	return (void *)(intptr_t)bad;
}

static void forks(void)
{
	pid_t pid = fork(), grandchild;

	if (pid == 0) {
		if (differs(-1))
			_exit(1);
		spoil(2);
		grandchild = fork();
		if (grandchild == 0) {
			mend(2);
			_exit(differs(-1));
		}
		_exit(waited(grandchild) ? 2 : page(2)[1] || differs(2) != 2);
	}
	spoil(3);
	CHECK_EQ(waited(pid), 0);
	mend(3);
	CHECK_EQ(differs(-1), 0);
}

/* A new program finds its own values, however it is started. */
static void runs(void)
{
	char *argv[] = { self, "again", NULL };
	pid_t pid;

	spoil(4);
	pid = fork();
	if (pid == 0) {
		execv(self, argv);
		_exit(9);
	}
	CHECK_EQ(waited(pid), 0);
	CHECK_EQ(posix_spawn(&pid, self, NULL, NULL, argv, environ), 0);
	CHECK_EQ(waited(pid), 0);
	pid = vfork();
	if (pid == 0) {
		execv(self, argv);
		_exit(9);
	}
	CHECK_EQ(waited(pid), 0);
	mend(4);
	CHECK_EQ(differs(-1), 0);
}

/* The result of a system call that reads a word of memory, or writes one: 0 or an errno. */
static int touches(volatile unsigned *at, int writes)
{
	unsigned word = 5;
	int ends[2], error;

	NEED(pipe(ends) == 0);
	errno = 0;
	if (write(ends[1], writes ? &word : (void *)at, sizeof word) == sizeof word && writes)
		(void)!read(ends[0], (void *)at, sizeof word);
	error = errno;
	close(ends[0]);
	close(ends[1]);
	return error;
}

/* The permissions that /proc/self/maps gives for an address. */
static void permissions(const volatile void *at, char found[5])
{
	char line[400];
	unsigned long start, end;
	FILE *maps = fopen("/proc/self/maps", "r");

	strcpy(found, "none");
	NEED(maps);
	while (fgets(line, sizeof line, maps)) {
		char flags[5];

		if (sscanf(line, "%lx-%lx %4s", &start, &end, flags) == 3 && (uintptr_t)at >= start &&
		    (uintptr_t)at < end)
			strcpy(found, flags);
	}
	fclose(maps);
}

static void protects(void)
{
	char found[5];

	CHECK_EQ(mprotect((void *)page(5), PAGE, PROT_READ), 0);
	CHECK_EQ(touches(page(5), 1), EFAULT);
	CHECK_EQ(touches(page(5), 0), 0);
	CHECK_EQ(touches(page(4), 1), 0);
	permissions(page(5) + 3, found);
	CHECK_STR(found, "r--p");
	permissions(page(6), found);
	CHECK_STR(found, "rw-p");
	CHECK_EQ(mprotect((void *)page(5), PAGE, PROT_NONE), 0);
	CHECK_EQ(touches(page(5), 0), EFAULT);
	pid_t pid = fork();
	if (pid == 0) {
		if (touches(page(5), 0) != EFAULT || mprotect((void *)page(5), PAGE, PROT_READ | PROT_WRITE))
			_exit(1);
		mend(4);
		_exit(differs(-1) ? 2 : 0);
	}
	CHECK_EQ(waited(pid), 0);
	CHECK_EQ(mprotect((void *)page(5), PAGE, PROT_READ | PROT_WRITE), 0);
	mend(4);
	CHECK_EQ(differs(-1), 0);
}

/* Pages of the table are unmapped, moved, and mapped again. */
static void maps(void)
{
	volatile unsigned *moved = mmap(NULL, 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char found[5];
	pid_t pid;

	NEED(moved != MAP_FAILED);
	page(7)[0] = 4;
	CHECK(
	    mremap((void *)page(6), 2 * PAGE, 2 * PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, (void *)moved) == (void *)moved);
	CHECK_EQ(touches(page(7), 0), EFAULT);
	CHECK_EQ(moved[1], V(6 * PAGE / 4 + 1));
	CHECK_EQ(moved[PAGE / 4], 4);
	CHECK_EQ(moved[PAGE / 4 + 1], V(7 * PAGE / 4 + 1));
	CHECK(mmap((void *)page(6), 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    (void *)page(6));
	CHECK_EQ(page(6)[0] | page(6)[PAGE / 4 - 1] | page(7)[0] | page(7)[7], 0);
	CHECK_EQ(munmap((void *)page(7), PAGE), 0);
	permissions(page(7), found);
	CHECK_STR(found, "none");
	pid = fork();
	if (pid == 0) {
		int bad = touches(page(7), 0) != EFAULT || page(6)[5] || moved[1] != V(6 * PAGE / 4 + 1);

		moved[1] = page(6)[5] = 6;
		_exit(bad ? 1 : page(8)[0] != V(8 * PAGE / 4));
	}
	CHECK_EQ(waited(pid), 0);
	CHECK_EQ(moved[1], V(6 * PAGE / 4 + 1));
	CHECK_EQ(page(6)[5], 0);
	CHECK(mmap((void *)page(7), PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
	    (void *)page(7));
	CHECK_EQ(page(7)[9], 0);
	mend(6);
	mend(7);
	CHECK_EQ(differs(-1), 0);
}

int main(int argc, char **argv)
{
	pthread_t thread;
	void *bad;

	(void)argc;
	self = argv[0];
	CHECK_EQ(differs(-1), 0);
	if (argv[1])
		return check_done();
	spoil(1);
	CHECK(differs(1) == 2);
	mend(1);
	CHECK_EQ(differs(-1), 0);
	CHECK_EQ(pthread_create(&thread, NULL, in_thread, NULL), 0);
	CHECK_EQ(pthread_join(thread, &bad), 0);
	CHECK_EQ((intptr_t)bad, 0);
	CHECK_EQ(own, 99);
	for (int round = 0; round < 3; round++)
		forks();
	runs();
	protects();
	maps();
	forks();
	runs();
	return check_done();
}
