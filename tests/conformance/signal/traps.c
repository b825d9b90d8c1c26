/* SIGFPE and SIGILL with handlers: their arguments, leaving them by siglongjmp, and the default. */
#include "../check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static sigjmp_buf back;
static siginfo_t last;
static volatile sig_atomic_t seen;

static void leave(int sig, siginfo_t *info, void *context)
{
	(void)context;
	last = *info;
	siglongjmp(back, sig);
}

/* In functions of their own: an exception leaves functions by their calls only. */
static __attribute__((noinline)) int divide(volatile int *by)
{
	return 1000 / *by;
}

static __attribute__((noinline)) int rest(volatile int *of, volatile int *by)
{
	return *of % *by;
}

static __attribute__((noinline)) unsigned long long divide_unsigned(volatile unsigned long long *by)
{
	return 1000 / *by;
}

static __attribute__((noinline)) int overflow(volatile int *of, volatile int *by)
{
	return *of / *by;
}

static __attribute__((noinline)) int illegal(void)
{
	__builtin_trap();
}

static int expect(int sig, int code)
{
	int right = CHECK_EQ(last.si_signo, sig) & CHECK_EQ(last.si_code, code) & CHECK(last.si_addr != NULL);
	memset(&last, 0, sizeof last);
	return right;
}

static void caught(void)
{
	struct sigaction sa = { .sa_sigaction = leave, .sa_flags = SA_SIGINFO };
	volatile int zero = 0, minus_one = -1, lowest = -2147483647 - 1, sum = 0, i;
	volatile unsigned long long none = 0;
	int came;

	NEED(sigaction(SIGFPE, &sa, 0) == 0);
	NEED(sigaction(SIGILL, &sa, 0) == 0);
	for (i = 0; i < 50; i++) {
		came = sigsetjmp(back, 1);
		if (!came)
			sum += divide(&zero);
		CHECK_EQ(came, SIGFPE);
		expect(SIGFPE, FPE_INTDIV);
		came = sigsetjmp(back, 1);
		if (!came)
			sum += illegal();
		CHECK_EQ(came, SIGILL);
		expect(SIGILL, ILL_ILLOPN);
	}
	if (!(came = sigsetjmp(back, 1)))
		sum += (int)divide_unsigned(&none);
	CHECK_EQ(came, SIGFPE);
	expect(SIGFPE, FPE_INTDIV);
	if (!(came = sigsetjmp(back, 1)))
		sum += rest(&lowest, &zero);
	CHECK_EQ(came, SIGFPE);
	expect(SIGFPE, FPE_INTDIV);
	if (!(came = sigsetjmp(back, 1)))
		sum += overflow(&lowest, &minus_one);
	CHECK_EQ(came, SIGFPE);
	expect(SIGFPE, FPE_INTDIV);
	CHECK_EQ(sum, 0);
}

static void count(int sig)
{
	struct sigaction gone = { .sa_handler = SIG_DFL };
	/* The division is tried again, and the third time nobody is there. */
	if (++seen == 3)
		sigaction(sig, &gone, 0);
}

static int end_of(void (*what)(void))
{
	int status = -1;
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		what();
		_exit(99);
	}
	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static void repeats(void)
{
	volatile int zero = 0;
	signal(SIGFPE, count);
	divide(&zero);
}

static void blocked(void)
{
	volatile int zero = 0;
	sigset_t set;
	signal(SIGFPE, count);
	sigemptyset(&set);
	sigaddset(&set, SIGFPE);
	sigprocmask(SIG_BLOCK, &set, 0);
	divide(&zero);
}

static void ignored(void)
{
	signal(SIGILL, SIG_IGN);
	illegal();
}

static void in_handler(int sig)
{
	volatile int zero = 0;
	divide(&zero);
	_exit(sig);
}

static void nested(void)
{
	signal(SIGUSR1, in_handler);
	signal(SIGFPE, _exit);
	raise(SIGUSR1);
}

static void twice(void)
{
	signal(SIGILL, in_handler);
	signal(SIGFPE, _exit);
	illegal();
}

int main(void)
{
	caught();
	signal(SIGFPE, SIG_DFL);
	signal(SIGILL, SIG_DFL);
	CHECK_EQ(WTERMSIG(end_of(repeats)), SIGFPE);
	CHECK_EQ(WTERMSIG(end_of(blocked)), SIGFPE);
	CHECK_EQ(WTERMSIG(end_of(ignored)), SIGILL);
	CHECK_EQ(WEXITSTATUS(end_of(nested)), SIGFPE);
	CHECK_EQ(WEXITSTATUS(end_of(twice)), SIGFPE);
	return check_done();
}
