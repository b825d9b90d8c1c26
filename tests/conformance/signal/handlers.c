/* Handlers at system calls: arguments, masks, nesting, order, SA_RESETHAND, SA_NODEFER, the
 * alternate stack. */
#include "../check.h"
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile sig_atomic_t seen, depth, deepest, runs;
static siginfo_t last;
static char order[64];
static int ordered;

static void count(int sig)
{
	seen += sig;
}

static void keep(int sig, siginfo_t *info, void *context)
{
	seen += sig;
	last = *info;
	CHECK(context != 0);
}

static void nest(int sig)
{
	depth++;
	if (depth > deepest)
		deepest = depth;
	if (++runs < 4)
		raise(sig);
	depth--;
}

static void log_order(int sig)
{
	order[ordered++] = 'a' + sig - SIGRTMIN;
}

static void set(int sig, void (*handler)(int), int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };
	CHECK_EQ(sigaction(sig, &sa, 0), 0);
}

static void in_handler_mask(int sig)
{
	sigset_t now;
	sigprocmask(SIG_BLOCK, 0, &now);
	seen = sigismember(&now, sig) | sigismember(&now, SIGUSR2) << 1 | sigismember(&now, SIGHUP) << 2;
}

static void clear_context(int sig, siginfo_t *info, void *context)
{
	ucontext_t *uc = context;
	(void)sig, (void)info;
	seen = sigismember(&uc->uc_sigmask, SIGUSR2);
	sigaddset(&uc->uc_sigmask, SIGTERM);
	sigdelset(&uc->uc_sigmask, SIGUSR2);
}

static void arguments(void)
{
	struct sigaction sa = { .sa_sigaction = keep, .sa_flags = SA_SIGINFO }, old;

	set(SIGUSR1, count, 0);
	seen = 0;
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(seen, SIGUSR1);
	CHECK_EQ(sigaction(SIGUSR1, &sa, &old), 0);
	CHECK(old.sa_handler == count);
	CHECK_EQ(kill(getpid(), SIGUSR1), 0);
	CHECK_EQ(seen, 2 * SIGUSR1);
	CHECK_EQ(last.si_signo, SIGUSR1);
	CHECK_EQ(last.si_code, SI_USER);
	CHECK_EQ(last.si_pid, getpid());
	CHECK_EQ(last.si_uid, getuid());
	CHECK_EQ(raise(SIGUSR1), 0);
	CHECK_EQ(last.si_code, SI_TKILL);
	CHECK_EQ(sigqueue(getpid(), SIGUSR1, (union sigval){ .sival_int = 77 }), 0);
	CHECK_EQ(last.si_code, SI_QUEUE);
	CHECK_EQ(last.si_value.sival_int, 77);
	CHECK_EQ(last.si_pid, getpid());
}

static void masks(void)
{
	struct sigaction sa = { .sa_handler = in_handler_mask };
	sigset_t block, now;

	sigemptyset(&sa.sa_mask);
	sigaddset(&sa.sa_mask, SIGUSR2);
	CHECK_EQ(sigaction(SIGUSR1, &sa, 0), 0);
	raise(SIGUSR1);
	CHECK_EQ(seen, 3);
	sa.sa_flags = SA_NODEFER;
	CHECK_EQ(sigaction(SIGUSR1, &sa, 0), 0);
	raise(SIGUSR1);
	CHECK_EQ(seen, 2);
	sigprocmask(SIG_BLOCK, 0, &now);
	CHECK(!sigismember(&now, SIGUSR1) && !sigismember(&now, SIGUSR2));

	/* The mask that the handler writes into its context is the mask afterwards. */
	sa.sa_sigaction = clear_context;
	sa.sa_flags = SA_SIGINFO;
	CHECK_EQ(sigaction(SIGUSR1, &sa, 0), 0);
	sigemptyset(&block);
	sigaddset(&block, SIGUSR2);
	sigprocmask(SIG_SETMASK, &block, 0);
	raise(SIGUSR1);
	CHECK_EQ(seen, 1);
	sigprocmask(SIG_BLOCK, 0, &now);
	CHECK(sigismember(&now, SIGTERM) && !sigismember(&now, SIGUSR2));
	sigemptyset(&block);
	sigprocmask(SIG_SETMASK, &block, 0);

	set(SIGUSR1, nest, 0);
	deepest = runs = 0;
	raise(SIGUSR1);
	CHECK_EQ(deepest, 1);
	set(SIGUSR1, nest, SA_NODEFER);
	deepest = runs = 0;
	raise(SIGUSR1);
	CHECK_EQ(deepest, 4);
}

static void pending(void)
{
	sigset_t block, none, waiting;

	sigemptyset(&none);
	sigfillset(&block);
	set(SIGUSR1, count, 0);
	set(SIGUSR2, count, 0);
	sigprocmask(SIG_SETMASK, &block, 0);
	seen = 0;
	kill(getpid(), SIGUSR1);
	kill(getpid(), SIGUSR1);
	raise(SIGUSR2);
	CHECK_EQ(seen, 0);
	CHECK_EQ(sigpending(&waiting), 0);
	CHECK(sigismember(&waiting, SIGUSR1) && sigismember(&waiting, SIGUSR2) && !sigismember(&waiting, SIGHUP));
	/* Ignoring forgets. */
	set(SIGUSR2, SIG_IGN, 0);
	CHECK_EQ(sigpending(&waiting), 0);
	CHECK(!sigismember(&waiting, SIGUSR2));
	sigprocmask(SIG_SETMASK, &none, 0);
	CHECK_EQ(seen, SIGUSR1);

	/* Real-time signals queue, lowest first; without masks each next one interrupts the one before it
	 * at once. */
	for (int i = 0; i < 3; i++)
		set(SIGRTMIN + i, log_order, 0);
	sigprocmask(SIG_SETMASK, &block, 0);
	for (int i = 2; i >= 0; i--)
		for (int n = 0; n < 2; n++)
			kill(getpid(), SIGRTMIN + i);
	ordered = 0;
	sigprocmask(SIG_SETMASK, &none, 0);
	order[ordered] = 0;
	CHECK_STR(order, "ccbbaa");
	for (int i = 0; i < 3; i++) {
		struct sigaction sa = { .sa_handler = log_order };
		sigfillset(&sa.sa_mask);
		sigaction(SIGRTMIN + i, &sa, 0);
	}
	sigprocmask(SIG_SETMASK, &block, 0);
	for (int i = 2; i >= 0; i--)
		for (int n = 0; n < 2; n++)
			kill(getpid(), SIGRTMIN + i);
	ordered = 0;
	sigprocmask(SIG_SETMASK, &none, 0);
	order[ordered] = 0;
	CHECK_STR(order, "aabbcc");
}

static void once(void)
{
	struct sigaction old;
	set(SIGUSR1, count, SA_RESETHAND);
	seen = 0;
	raise(SIGUSR1);
	CHECK_EQ(seen, SIGUSR1);
	CHECK_EQ(sigaction(SIGUSR1, 0, &old), 0);
	CHECK(old.sa_handler == SIG_DFL);
}

static char alternate[65536];
static void *where;

static void on_stack(int sig)
{
	int here = sig;
	stack_t now, other = { .ss_sp = alternate, .ss_size = sizeof alternate };
	where = &here;
	CHECK_EQ(sigaltstack(0, &now), 0);
	seen = now.ss_flags;
	if (now.ss_flags & SS_ONSTACK)
		CHECK_ERRNO(sigaltstack(&other, 0), EPERM);
}

static int within(void *at)
{
	return (char *)at >= alternate && (char *)at < alternate + sizeof alternate;
}

static void stacks(void)
{
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate }, now;

	CHECK_EQ(sigaltstack(0, &now), 0);
	CHECK_EQ(now.ss_flags, SS_DISABLE);
	stack.ss_size = 100;
	CHECK_ERRNO(sigaltstack(&stack, 0), ENOMEM);
	stack.ss_size = sizeof alternate;
	stack.ss_flags = 77;
	CHECK_ERRNO(sigaltstack(&stack, 0), EINVAL);
	stack.ss_flags = 0;
	CHECK_EQ(sigaltstack(&stack, 0), 0);
	set(SIGUSR1, on_stack, 0);
	raise(SIGUSR1);
	CHECK(!within(where));
	CHECK_EQ(seen, 0);
	set(SIGUSR1, on_stack, SA_ONSTACK);
	raise(SIGUSR1);
	CHECK(within(where));
	CHECK_EQ(seen, SS_ONSTACK);
	CHECK_EQ(sigaltstack(0, &now), 0);
	CHECK_EQ(now.ss_flags, 0);
	CHECK(now.ss_sp == alternate);
	stack.ss_flags = SS_DISABLE;
	CHECK_EQ(sigaltstack(&stack, 0), 0);
	raise(SIGUSR1);
	CHECK(!within(where));
}

static sigjmp_buf back;

static void jump(int sig)
{
	siglongjmp(back, sig);
}

static void jumps(void)
{
	stack_t stack = { .ss_sp = alternate, .ss_size = sizeof alternate }, now;
	sigset_t mask;

	for (volatile int flags = 0; flags < 2; flags++) {
		CHECK_EQ(sigaltstack(&stack, 0), 0);
		set(SIGUSR1, jump, flags ? SA_ONSTACK : 0);
		for (volatile int i = 0; i < 3; i++) {
			int came = sigsetjmp(back, 1);
			if (!came) {
				kill(getpid(), SIGUSR1);
				CHECK(!"reached");
			}
			CHECK_EQ(came, SIGUSR1);
			sigprocmask(SIG_BLOCK, 0, &mask);
			CHECK(!sigismember(&mask, SIGUSR1));
			CHECK_EQ(sigaltstack(0, &now), 0);
			CHECK_EQ(now.ss_flags, 0);
		}
	}
	/* Without the mask the signal stays blocked. */
	if (!sigsetjmp(back, 0))
		raise(SIGUSR1);
	sigprocmask(SIG_BLOCK, 0, &mask);
	CHECK(sigismember(&mask, SIGUSR1));
	sigemptyset(&mask);
	sigprocmask(SIG_SETMASK, &mask, 0);
}

static void refused(void)
{
	struct sigaction sa = { .sa_handler = count };
	CHECK_ERRNO(sigaction(SIGKILL, &sa, 0), EINVAL);
	CHECK_ERRNO(sigaction(SIGSTOP, &sa, 0), EINVAL);
	CHECK_ERRNO(sigaction(65, &sa, 0), EINVAL);
	CHECK_EQ(sigaction(SIGKILL, 0, &sa), 0);
	CHECK_ERRNO(kill(getpid(), 65), EINVAL);
	CHECK_ERRNO(kill(getpid(), -1), EINVAL);
	CHECK_ERRNO(kill(999999999, 0), ESRCH);
	CHECK_EQ(kill(getpid(), 0), 0);
}

int main(void)
{
	arguments();
	masks();
	pending();
	once();
	stacks();
	jumps();
	refused();
	return check_done();
}
