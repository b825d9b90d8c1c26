/* MADV_DONTNEED on a program's data: what the program started with comes back, in a parent, its
 * children and theirs; what had no value is zero. */
#include "check.h"
#include "values.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE      4096
#define WORDS     65536
#define PAGES     (WORDS * 4 / PAGE)
#define V16384(i) V4096(i), V4096((i) + 4096), V4096((i) + 8192), V4096((i) + 12288)

static volatile unsigned table[WORDS]
    __attribute__((aligned(PAGE))) = { V16384(0), V16384(16384), V16384(32768), V16384(49152) };
static volatile unsigned char sparse[8 * PAGE] __attribute__((aligned(PAGE))) = { 1, [8 * PAGE - 1] = 3 };
static volatile unsigned char zeroes[8 * PAGE] __attribute__((aligned(PAGE)));

static volatile unsigned *page(int n)
{
	return table + n * (PAGE / 4);
}

static void write_all(unsigned value)
{
	for (int i = 0; i < WORDS; i++)
		table[i] = value + (unsigned)i;
}

/* How many words from page `from` on are not those of the start, or, with another value, not what
 * write_all wrote. */
static int wrong(int from, int to, unsigned value)
{
	int count = 0;

	for (int i = from * PAGE / 4; i < to * PAGE / 4; i++)
		count += table[i] != (value ? value + (unsigned)i : V(i));
	return count;
}

static int discard(int from, int to)
{
	return madvise((void *)page(from), (size_t)(to - from) * PAGE, MADV_DONTNEED);
}

static void alone(void)
{
	CHECK_EQ(discard(0, PAGES), 0);
	CHECK_EQ(wrong(0, PAGES, 0), 0);
	write_all(7);
	CHECK_EQ(discard(3, 5), 0);
	CHECK_EQ(wrong(0, 3, 7), 0);
	CHECK_EQ(wrong(3, 5, 0), 0);
	CHECK_EQ(wrong(5, PAGES, 7), 0);
	/* It can be written to, and given back, again. */
	write_all(8);
	CHECK_EQ(wrong(0, PAGES, 8), 0);
	CHECK_EQ(discard(0, PAGES), 0);
	CHECK_EQ(wrong(0, PAGES, 0), 0);

	memset((void *)sparse, 9, sizeof sparse);
	memset((void *)zeroes, 9, sizeof zeroes);
	CHECK_EQ(madvise((void *)sparse, sizeof sparse, MADV_DONTNEED), 0);
	CHECK_EQ(madvise((void *)zeroes, sizeof zeroes, MADV_DONTNEED), 0);
	for (int i = 0; i < (int)sizeof sparse; i++)
		if (sparse[i] != (i == 0 ? 1 : i == (int)sizeof sparse - 1 ? 3 : 0) || zeroes[i]) {
			CHECK_EQ(i, -1);
			break;
		}

	/* The protection does not matter. */
	write_all(3);
	CHECK_EQ(mprotect((void *)page(8), 4 * PAGE, PROT_READ), 0);
	CHECK_EQ(discard(6, 14), 0);
	CHECK_EQ(wrong(6, 14, 0), 0);
	CHECK_EQ(mprotect((void *)page(8), 4 * PAGE, PROT_READ | PROT_WRITE), 0);
}

/* Children write and discard the data that they inherit. */
static int child(int depth)
{
	unsigned value = 100u + (unsigned)depth;
	int status;
	pid_t pid;

	if (wrong(0, PAGES, value - 1) != 0)
		return 10;
	if (discard(2, 20) != 0 || wrong(2, 20, 0) != 0 || wrong(20, PAGES, value - 1) != 0)
		return 11;
	write_all(value);
	if (depth < 6) {
		for (int i = 0; i < 2; i++) {
			pid = fork();
			if (pid == 0)
				_exit(child(depth + 1));
			if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
				return WIFEXITED(status) ? WEXITSTATUS(status) : 12;
		}
	}
	if (wrong(0, PAGES, value) != 0)
		return 13;
	if (discard(0, PAGES) != 0 || wrong(0, PAGES, 0) != 0)
		return 14;
	return 0;
}

static void forked(void)
{
	int status;
	pid_t pid;

	write_all(99);
	pid = fork();
	NEED(pid >= 0);
	if (pid == 0)
		_exit(child(0));
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(wrong(0, PAGES, 99), 0);
	CHECK_EQ(discard(0, PAGES), 0);
	CHECK_EQ(wrong(0, PAGES, 0), 0);
}

/* A page that was mapped in their place is not data any more. */
static void replaced(void)
{
	void *got =
	    mmap((void *)page(30), 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);

	CHECK(got == (void *)page(30));
	*page(30) = 5;
	CHECK_EQ(discard(29, 33), 0);
	CHECK_EQ(wrong(29, 30, 0), 0);
	CHECK_EQ(*page(30), 0);
	CHECK_EQ(*page(31), 0);
	CHECK_EQ(wrong(32, 33, 0), 0);
	CHECK_EQ(munmap((void *)page(40), PAGE), 0);
	CHECK_ERRNO(discard(39, 42), ENOMEM);
	CHECK_EQ(wrong(39, 40, 0), 0);
	CHECK_EQ(wrong(41, 42, 0), 0);
}

int main(void)
{
	alone();
	forked();
	replaced();
	return check_done();
}
