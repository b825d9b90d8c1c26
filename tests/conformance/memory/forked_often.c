/* Much memory and many forks: every process has what was there when it was forked, and what is
 * given back reads as zeroes. */
#include "check.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE  4096
#define PAGES (8 * 1024)
#define SIZE  ((size_t)PAGES * PAGE)

static volatile unsigned char *memory, *shared;
/* The contents of each page. */
static unsigned char holds[PAGES];

static int differs(void)
{
	for (int i = 0; i < PAGES; i++)
		if (memory[(size_t)i * PAGE + 7] != holds[i] || memory[(size_t)i * PAGE] != 0)
			return i + 1;
	return 0;
}

static void put(int first, int end, unsigned char value)
{
	for (int i = first; i < end; i++) {
		memory[(size_t)i * PAGE + 7] = value;
		holds[i] = value;
	}
}

static void zero(int first, int end)
{
	memset(holds + first, 0, (size_t)(end - first));
}

/* The work of a child on its copy; its parent must not see it. */
static int child(int round)
{
	if (differs())
		return 1;
	put(round, PAGES / 2 + round, 200);
	if (differs())
		return 2;
	shared[round]++;
	if (round % 3 == 0) {
		int status;
		pid_t pid = fork();

		if (pid == 0) {
			int bad = differs();

			put(0, PAGES, 201);
			_exit(bad || differs());
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid || status || differs())
			return 3;
	}
	return 0;
}

static void fork_once(int round)
{
	int status = -1;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0)
		_exit(child(round));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(shared[round], 1);
	CHECK_EQ(differs(), 0);
}

int main(void)
{
	int round = 0;
	void *p = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	memory = p;
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	NEED(p != MAP_FAILED && shared != MAP_FAILED);
	put(0, PAGES, 1);
	while (round < 4)
		fork_once(round++);

	/* Given back, it is zeroes, now and after the next forks. */
	CHECK_EQ(madvise((char *)p + 100 * PAGE, 1000 * PAGE, MADV_DONTNEED), 0);
	zero(100, 1100);
	CHECK_EQ(differs(), 0);
	fork_once(round++);
	for (int i = 2000; i < 2100; i += 2) {
		CHECK_EQ(madvise((char *)p + (size_t)i * PAGE, PAGE, MADV_DONTNEED), 0);
		zero(i, i + 1);
	}
	CHECK_EQ(differs(), 0);
	fork_once(round++);
	put(3000, 3700, 2);
	fork_once(round++);

	/* Mapped again. */
	CHECK_EQ(munmap((char *)p + 4000 * PAGE, 600 * PAGE), 0);
	CHECK(mmap((char *)p + 4000 * PAGE, 600 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
		  -1, 0) == (char *)p + 4000 * PAGE);
	zero(4000, 4600);
	CHECK_EQ(differs(), 0);
	fork_once(round++);

	/* Protected, and protected again. */
	CHECK_EQ(mprotect((char *)p + 5000 * PAGE, 900 * PAGE, PROT_READ), 0);
	CHECK_EQ(differs(), 0);
	CHECK_EQ(mprotect((char *)p + 5000 * PAGE, 900 * PAGE, PROT_NONE), 0);
	CHECK_EQ(mprotect((char *)p + 5000 * PAGE, 900 * PAGE, PROT_READ | PROT_WRITE), 0);
	fork_once(round++);

	/* Moved, with room behind it. */
	p = mremap(p, SIZE, SIZE + 64 * PAGE, MREMAP_MAYMOVE);
	NEED(p != MAP_FAILED);
	memory = p;
	CHECK_EQ(differs(), 0);
	CHECK_EQ(memory[SIZE + 63 * PAGE], 0);
	fork_once(round++);
	p = mremap(p, SIZE + 64 * PAGE, SIZE, 0);
	NEED(p != MAP_FAILED);
	memory = p;
	put(0, PAGES, 3);
	while (round < 20)
		fork_once(round++);
	CHECK_EQ(munmap(p, SIZE), 0);

	/* The heap, which shrinks and grows. */
	char *heap = sbrk(0);

	if (sbrk((intptr_t)SIZE) == heap) {
		memory = (unsigned char *)heap;
		zero(0, PAGES);
		put(0, PAGES, 4);
		while (round < 24)
			fork_once(round++);
		CHECK(sbrk(-(intptr_t)(SIZE / 2)) != (void *)-1);
		CHECK(sbrk((intptr_t)(SIZE / 2)) != (void *)-1);
		zero(PAGES / 2, PAGES);
		CHECK_EQ(differs(), 0);
		fork_once(round++);
		CHECK_EQ(brk(heap), 0);
	}
	CHECK_EQ(munmap((void *)shared, PAGE), 0);
	return check_done();
}
