/* fork in a handler: one that runs at a call, one that interrupts computation, nested ones, on the
 * alternate stack; what the child may do, what the parent's handler goes on with, and where it goes
 * back to. */
#include "../check.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile pid_t child;
static volatile int calls, depth, seen, stop;
static int (*volatile twice)(int);
static sigjmp_buf out;
static char stack[64 << 10];

static int ended(pid_t pid)
{
	int status = -1;

	CHECK_EQ(waitpid(pid, &status, 0), pid);
	return status;
}

static int doubled(int n)
{
	return 2 * n;
}

/* Frames with values in them, one through a pointer. */
static __attribute__((noinline)) pid_t below(int n, long long sum, double half)
{
	pid_t pid;

	if (n) {
		pid = below(n - 1, sum + n, half / 2);
		calls += twice(n) + (int)sum - (int)sum + (half > 0 ? 0 : 1000);
		return pid;
	}
	pid = fork();
	if (pid == 0) {
		CHECK_EQ(sum, 10 + 9 + 8 + 7 + 6 + 5 + 4 + 3 + 2 + 1);
		fflush(stdout);
		if (check_failures)
			_exit(99);
	}
	return pid;
}

static void plain(int sig)
{
	char mark[16] = "unharmed";
	pid_t pid = below(10, 0, 1024);

	seen = sig;
	if (pid == 0)
		_exit(strcmp(mark, "unharmed") ? 98 : 3 + (sig == SIGUSR1));
	CHECK_STR(mark, "unharmed");
	child = pid;
	stop = 1;
}

static void at_a_call(void)
{
	struct sigaction sa = { .sa_handler = plain };
	int local = 5, i;

	NEED(sigaction(SIGUSR1, &sa, 0) == 0);
	for (i = 0; i < 5; i++) {
		calls = 0;
		CHECK_EQ(raise(SIGUSR1), 0);
		CHECK_EQ(seen, SIGUSR1);
		CHECK_EQ(calls, 110);
		NEED(child > 0);
		CHECK_EQ(WEXITSTATUS(ended(child)), 4);
		local += i;
	}
	CHECK_EQ(local, 15);
}

static void while_computing(void)
{
	struct sigaction sa = { .sa_handler = plain };
	struct itimerval timer = { .it_value = { 0, 3000 } };
	volatile unsigned long turns = 0;
	int i;

	NEED(sigaction(SIGALRM, &sa, 0) == 0);
	for (i = 0; i < 5; i++) {
		stop = 0;
		child = 0;
		NEED(setitimer(ITIMER_REAL, &timer, 0) == 0);
		while (!stop)
			turns++;
		NEED(child > 0);
		CHECK_EQ(WEXITSTATUS(ended(child)), 3);
	}
	CHECK(turns > 0);
}

/* In a call that waits, with siginfo, on the alternate stack; the child's mask is the handler's. */
static void with_info(int sig, siginfo_t *info, void *context)
{
	sigset_t mask;
	stack_t now;
	pid_t pid;

	(void)context;
	CHECK_EQ(sig, SIGALRM);
	CHECK_EQ(info->si_signo, SIGALRM);
	CHECK_EQ(sigaltstack(0, &now), 0);
	CHECK(now.ss_flags & SS_ONSTACK);
	pid = below(10, 0, 4);
	CHECK_EQ(sigaltstack(0, &now), 0);
	CHECK(now.ss_flags & SS_ONSTACK);
	sigprocmask(SIG_BLOCK, 0, &mask);
	CHECK(sigismember(&mask, SIGALRM));
	CHECK(sigismember(&mask, SIGHUP));
	CHECK_EQ(info->si_signo, SIGALRM);
	if (pid == 0) {
		fflush(stdout);
		_exit(check_failures ? 97 : 6);
	}
	child = pid;
}

static void in_a_wait(void)
{
	struct sigaction sa = { .sa_sigaction = with_info, .sa_flags = SA_SIGINFO | SA_ONSTACK };
	struct itimerval timer = { .it_value = { 0, 3000 } };
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof stack }, before;
	sigset_t mask;
	int pipes[2];
	char byte;

	sigemptyset(&sa.sa_mask);
	sigaddset(&sa.sa_mask, SIGHUP);
	NEED(pipe(pipes) == 0 && sigaltstack(&alternate, &before) == 0 && sigaction(SIGALRM, &sa, 0) == 0);
	/* With a wait that nothing but the handler ends, however late the signal. */
	NEED(setitimer(ITIMER_REAL, &timer, 0) == 0);
	CHECK_ERRNO(read(pipes[0], &byte, 1), EINTR);
	CHECK_EQ(WEXITSTATUS(ended(child)), 6);
	sigprocmask(SIG_BLOCK, 0, &mask);
	CHECK(!sigismember(&mask, SIGALRM));
	CHECK(!sigismember(&mask, SIGHUP));
	NEED(sigaltstack(&before, 0) == 0);
	close(pipes[0]);
	close(pipes[1]);
}

/* The child runs handlers of its own, forks itself, and runs a program. */
static void grandchild(int sig)
{
	pid_t pid = fork(), next;

	if (pid == 0) {
		if (++depth < 3)
			raise(SIGUSR2);
		next = fork();
		if (next == 0)
			execl("/proc/self/exe", "fork", "7", (char *)0);
		_exit(next > 0 ? WEXITSTATUS(ended(next)) + depth : 96);
	}
	NEED(pid > 0);
	/* All of them are in a row: 7 + 3. */
	pid = WEXITSTATUS(ended(pid));
	if (depth)
		_exit(pid);
	child = pid;
	seen = sig;
}

static void nested(void)
{
	struct sigaction sa = { .sa_handler = grandchild, .sa_flags = SA_NODEFER };

	NEED(sigaction(SIGUSR2, &sa, 0) == 0);
	CHECK_EQ(raise(SIGUSR2), 0);
	CHECK_EQ(seen, SIGUSR2);
	CHECK_EQ(child, 10);
}

/* Left by siglongjmp after the fork, in the parent. */
static void leaves(int sig)
{
	child = fork();
	if (child == 0)
		_exit(8);
	siglongjmp(out, sig);
}

static __attribute__((noinline)) void spin(void)
{
	struct itimerval timer = { .it_value = { 0, 3000 } };

	NEED(setitimer(ITIMER_REAL, &timer, 0) == 0);
	while (child <= 0)
		calls++;
}

static void jumps(void)
{
	struct sigaction sa = { .sa_handler = leaves };
	volatile int i;
	int came;

	NEED(sigaction(SIGALRM, &sa, 0) == 0 && sigaction(SIGUSR1, &sa, 0) == 0);
	for (i = 0; i < 3; i++) {
		came = sigsetjmp(out, 1);
		if (!came)
			raise(SIGUSR1);
		CHECK_EQ(came, SIGUSR1);
		CHECK_EQ(WEXITSTATUS(ended(child)), 8);
		child = 0;
		came = sigsetjmp(out, 1);
		if (!came)
			spin();
		CHECK_EQ(came, SIGALRM);
		CHECK_EQ(WEXITSTATUS(ended(child)), 8);
	}
}

/* Frames that nothing goes on with: who calls this does not expect it back. */
static __attribute__((noinline, noreturn)) void last_words(int sig)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(9);
	_exit(WEXITSTATUS(ended(pid)) + (sig == SIGUSR1));
}

static void dies(int sig)
{
	last_words(sig);
}

static void for_good(void)
{
	pid_t pid = fork();

	NEED(pid >= 0);
	if (pid == 0) {
		signal(SIGUSR1, dies);
		raise(SIGUSR1);
		_exit(1);
	}
	CHECK_EQ(WEXITSTATUS(ended(pid)), 10);
}

/* A case that a cage cannot handle: its handler's frames are all that the child has. */
static void returns(int sig)
{
	(void)sig;
	child = fork();
}

static void back_to_the_program(void)
{
	struct sigaction sa = { .sa_handler = returns };
	struct rlimit none = { 0, 0 };
	int status;

	/* No core of it. */
	setrlimit(RLIMIT_CORE, &none);
	NEED(sigaction(SIGUSR1, &sa, 0) == 0);
	raise(SIGUSR1);
	if (child == 0)
		_exit(11);
	NEED(child > 0);
	status = ended(child);
#ifdef __wasm__
	CHECK(WIFSIGNALED(status));
	CHECK_EQ(WTERMSIG(status), SIGABRT);
#else
	CHECK_EQ(WEXITSTATUS(status), 11);
#endif
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return atoi(argv[1]);
	twice = doubled;
	at_a_call();
	while_computing();
	in_a_wait();
	nested();
	jumps();
	for_good();
	back_to_the_program();
	return check_done();
}
