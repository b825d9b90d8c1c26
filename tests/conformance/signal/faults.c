/* Faults with a handler: its arguments, leaving it by siglongjmp, and mending the cause. */
#include "../check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

static sigjmp_buf back;
static siginfo_t last;
static volatile int mended;

static void leave(int sig, siginfo_t *info, void *context)
{
	(void)context;
	last = *info;
	siglongjmp(back, sig);
}

static void mend(int sig, siginfo_t *info, void *context)
{
	long page = sysconf(_SC_PAGESIZE);
	(void)sig, (void)context;
	mended++;
	CHECK_EQ(mprotect((void *)((unsigned long)info->si_addr & -page), page, PROT_READ | PROT_WRITE), 0);
}

/* In functions of their own: an exception leaves functions by their calls only. */
static __attribute__((noinline)) int read_at(volatile int *at)
{
	return *at;
}

int main(void)
{
	struct sigaction sa = { .sa_sigaction = leave, .sa_flags = SA_SIGINFO };
	volatile int i, sum = 0;
	int came;
	char *page;

	page = mmap(0, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(page != MAP_FAILED);
	NEED(sigaction(SIGSEGV, &sa, 0) == 0);
	for (i = 0; i < 100; i++) {
		came = sigsetjmp(back, 1);
		if (!came)
			sum += read_at((int *)(page + 40));
		CHECK_EQ(came, SIGSEGV);
		CHECK_EQ(last.si_signo, SIGSEGV);
		CHECK_EQ(last.si_code, SEGV_ACCERR);
		CHECK(last.si_addr == page + 40);
	}
	came = sigsetjmp(back, 1);
	if (!came)
		sum += read_at((int *)16);
	CHECK_EQ(came, SIGSEGV);
	CHECK(last.si_addr == (void *)16);
	CHECK_EQ(last.si_code, SEGV_MAPERR);
	{
		char *gone = mmap(0, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		NEED(gone != MAP_FAILED && munmap(gone, 4096) == 0);
		came = sigsetjmp(back, 1);
		if (!came)
			sum += read_at((int *)gone);
		CHECK_EQ(came, SIGSEGV);
		CHECK_EQ(last.si_code, SEGV_MAPERR);
	}
	sa.sa_sigaction = mend;
	NEED(sigaction(SIGSEGV, &sa, 0) == 0);
	CHECK_EQ(read_at((int *)(page + 4096)), 0);
	page[100] = 7;
	CHECK_EQ(page[100], 7);
	CHECK_EQ(mended, 2);
	CHECK_EQ(sum, 0);
	return check_done();
}
