/* madvise(MADV_GUARD_INSTALL): pages that nobody can touch, whatever their protection, until
 * MADV_GUARD_REMOVE; empty then. */
#include "../check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define INSTALL 102
#define REMOVE  103
#define PAGE    4096L

static sigjmp_buf back;

static void faulted(int sig)
{
	(void)sig;
	siglongjmp(back, 1);
}

/* The byte there, or -1. */
static int touch(volatile unsigned char *at)
{
	if (sigsetjmp(back, 1))
		return -1;
	return *at;
}

int main(void)
{
	struct sigaction action = { .sa_handler = faulted };
	unsigned char *p = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int ends[2], status = -1;
	pid_t pid;

	NEED(p != MAP_FAILED && pipe(ends) == 0 && sigaction(SIGSEGV, &action, NULL) == 0);
	if (madvise(p, PAGE, INSTALL) && errno == EINVAL)
		check_skip("this kernel has no guards");
	CHECK_EQ(madvise(p, PAGE, REMOVE), 0);
	memset(p, 7, 4 * PAGE);
	CHECK_EQ(madvise(p + PAGE, 2 * PAGE, INSTALL), 0);
	CHECK_EQ(touch(p), 7);
	CHECK_EQ(touch(p + PAGE), -1);
	CHECK_EQ(touch(p + 3 * PAGE - 1), -1);
	CHECK_EQ(touch(p + 3 * PAGE), 7);
	CHECK_ERRNO(write(ends[1], p + PAGE, 1), EFAULT);
	/* Neither protection nor other advice takes them away; a child has them too. */
	CHECK_EQ(mprotect(p, 4 * PAGE, PROT_READ), 0);
	CHECK_EQ(mprotect(p, 4 * PAGE, PROT_READ | PROT_WRITE), 0);
	CHECK_EQ(madvise(p, 4 * PAGE, MADV_DONTNEED), 0);
	CHECK_EQ(touch(p + PAGE), -1);
	CHECK_EQ(touch(p), 0);
	NEED((pid = fork()) >= 0);
	if (pid == 0)
		_exit(touch(p + 2 * PAGE) != -1);
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	CHECK_EQ(status, 0);
	CHECK_EQ(madvise(p + PAGE, PAGE, REMOVE), 0);
	CHECK_EQ(touch(p + PAGE), 0);
	CHECK_EQ(touch(p + 2 * PAGE), -1);
	CHECK_EQ(madvise(p, 4 * PAGE, REMOVE), 0);
	CHECK_EQ(touch(p + 2 * PAGE), 0);
	CHECK_EQ(munmap(p + PAGE, PAGE), 0);
	CHECK_ERRNO(madvise(p, 4 * PAGE, INSTALL), ENOMEM);
	CHECK_EQ(touch(p + 3 * PAGE), -1);
	CHECK_ERRNO(madvise(p + 1, PAGE, INSTALL), EINVAL);
	/* A new mapping in its place has none. */
	CHECK(mmap(p, 4 * PAGE, PROT_READ, MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == p);
	CHECK_EQ(touch(p + 3 * PAGE), 0);
	return check_done();
}
