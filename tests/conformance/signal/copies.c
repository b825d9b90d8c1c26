/* Faults in the middle of memcpy, memmove and memset, with a handler: it mends the page, or leaves
 * by siglongjmp. */
#include "../check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGES 40

static sigjmp_buf out;
static char *volatile area;
static char *volatile source;
static volatile int faults, leave;
static volatile uintptr_t where;
static long page;

static void fault(int sig, siginfo_t *info, void *context)
{
	(void)context;
	faults++;
	where = (uintptr_t)info->si_addr;
	if (leave)
		siglongjmp(out, sig);
	if (faults > 2 * PAGES || mprotect((void *)(where & -page), page, PROT_READ | PROT_WRITE) != 0)
		_exit(50);
}

/* The size is known at run time only, so that nothing is done in place. */
static __attribute__((noinline)) void copy(char *to, const char *from, volatile size_t size)
{
	memcpy(to, from, size);
}

static __attribute__((noinline)) void move(char *to, const char *from, volatile size_t size)
{
	memmove(to, from, size);
}

static __attribute__((noinline)) void fill(char *to, int byte, volatile size_t size)
{
	memset(to, byte, size);
}

static void mended(void)
{
	size_t size = PAGES * page, at;
	int wrong = 0;

	NEED(mprotect(area, size, PROT_NONE) == 0);
	faults = 0;
	copy(area, source, size);
	CHECK_EQ(faults, PAGES);
	CHECK(memcmp(area, source, size) == 0);

	NEED(mprotect(area, size, PROT_READ) == 0);
	faults = 0;
	fill(area + 5, 0xab, size - 10);
	CHECK_EQ(faults, PAGES);
	for (at = 0; at < size; at++)
		wrong += area[at] != (at < 5 || at >= size - 5 ? source[at] : (char)0xab);
	CHECK_EQ(wrong, 0);

	/* Of an overlapping move nothing may be done twice. */
	memcpy(area, source, size);
	NEED(mprotect(area + 3 * page, page, PROT_READ) == 0);
	NEED(mprotect(area + 7 * page, page, PROT_NONE) == 0);
	faults = 0;
	move(area + 100, area, size - 100);
	CHECK_EQ(faults, 2);
	CHECK(memcmp(area + 100, source, size - 100) == 0);

	memcpy(area, source, size);
	NEED(mprotect(area + 9 * page, page, PROT_NONE) == 0);
	faults = 0;
	move(area, area + 100, size - 100);
	CHECK_EQ(faults, 1);
	CHECK(memcmp(area, source + 100, size - 100) == 0);
}

static __attribute__((noinline)) int left(int what)
{
	size_t size = PAGES * page;
	int came = sigsetjmp(out, 1);

	if (came)
		return came;
	switch (what) {
	case 0:
		copy(area, source, size);
		break;
	case 1:
		copy(area + 3 * page, area, 7 * page);
		break;
	case 2:
		fill(area + page, 1, size - page);
		break;
	case 3:
		move(area + 1, area, 9 * page);
		break;
	}
	return 0;
}

static void jumped(void)
{
	size_t size = PAGES * page;
	int i;

	leave = 1;
	for (i = 0; i < 200; i++) {
		NEED(mprotect(area, size, PROT_READ | PROT_WRITE) == 0);
		NEED(mprotect(area + 5 * page, page, PROT_NONE) == 0);
		faults = 0;
		where = 0;
		CHECK_EQ(left(i % 4), SIGSEGV);
		CHECK_EQ(faults, 1);
		CHECK(where >= (uintptr_t)area + 5 * page && where < (uintptr_t)area + 6 * page);
	}
	leave = 0;
	NEED(mprotect(area, size, PROT_READ | PROT_WRITE) == 0);
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };
	size_t at;

	page = sysconf(_SC_PAGESIZE);
	area = mmap(0, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	source = malloc(PAGES * page);
	NEED(area != MAP_FAILED && source && sigaction(SIGSEGV, &sa, 0) == 0);
	for (at = 0; at < (size_t)PAGES * page; at++)
		source[at] = (char)(at * 7 + at / 4096);
	mended();
	jumped();
	mended();
	free(source);
	return check_done();
}
