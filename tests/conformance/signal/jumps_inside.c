/*
 * siglongjmp out of a handler to a sigsetjmp of the very function that was interrupted: in loops,
 * at accesses and divisions that fault, by time, nested, in threads and after a fork. A variable
 * that was not changed since sigsetjmp keeps its value, and so does a volatile one.
 */
#include "../check.h"
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

static __thread sigjmp_buf back, outer;
static __thread void *volatile address;
static volatile unsigned long turns;
static char *none, *half, *readable;

static void jump(int sig, siginfo_t *info, void *context)
{
	(void)context;
	address = info->si_addr;
	siglongjmp(back, sig);
}

static void tick(int microseconds)
{
	struct itimerval timer = { .it_value = { 0, microseconds } };
	NEED(setitimer(ITIMER_REAL, &timer, 0) == 0);
}

static int stores(void)
{
	int came = sigsetjmp(back, 1);
	if (!came) {
		tick(2000);
		for (;;)
			turns++;
	}
	return came;
}

static int computes(unsigned x)
{
	int came = sigsetjmp(back, 1);
	if (!came) {
		tick(2000);
		for (;;) {
			x = x * 1664525u + 1013904223u;
			if (x == 1 && turns == 1)
				return (int)turns;
		}
	}
	return came;
}

/* Two loops, one in the other, and a value that a longjmp must not lose. */
static long nested_loops(long given)
{
	long before = given * 3 + 1;
	volatile long changed = 1;
	int came = sigsetjmp(back, 1);
	if (!came) {
		changed = given + 7;
		tick(2000);
		for (;;)
			for (int i = 0; i < 100; i++)
				turns += i;
	}
	return came * 1000 + before + changed;
}

/* A jump from each of many timers, to the same place. */
static int again_and_again(void)
{
	volatile int times = 0;
	sigsetjmp(back, 1);
	if (times++ < 20) {
		tick(500);
		for (;;)
			turns++;
	}
	return times;
}

#define READS(name, type) \
	static int name(type *p) \
	{ \
		int came = sigsetjmp(back, 1); \
		if (!came) \
			return *(volatile type *)p != 0 ? -1 : -2; \
		return came; \
	}
#define WRITES(name, type) \
	static int name(type *p) \
	{ \
		volatile int before = 7; \
		int came = sigsetjmp(back, 1); \
		if (!came) { \
			before = 8; \
			*(volatile type *)p = 1; \
			return -1; \
		} \
		return came * 10 + before; \
	}
READS(read_byte, char)
READS(read_short, short)
READS(read_int, int)
READS(read_long, long long)
READS(read_double, double)
WRITES(write_byte, char)
WRITES(write_short, short)
WRITES(write_int, int)
WRITES(write_long, long long)
WRITES(write_double, double)

static int adds(int *p)
{
	int came = sigsetjmp(back, 1);
	return came ? came : __atomic_fetch_add(p, 1, __ATOMIC_SEQ_CST);
}

static int exchanges(int *p)
{
	int expected = 3, came = sigsetjmp(back, 1);
	return came ? came : __atomic_compare_exchange_n(p, &expected, 4, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}

struct large {
	int a[20];
};
static int copies(struct large *to, const struct large *from)
{
	int came = sigsetjmp(back, 1);
	if (!came)
		*to = *from;
	return came;
}

static int sums(const int *p, int n)
{
	int sum = 0, came = sigsetjmp(back, 1);
	if (came)
		return -came;
	for (int i = 0; i < n; i++)
		sum += p[i];
	return sum;
}

static int fills(char *p, size_t n)
{
	int came = sigsetjmp(back, 1);
	if (!came)
		memset(p, 5, n);
	return came;
}

static int moves(char *to, const char *from, size_t n)
{
	int came = sigsetjmp(back, 1);
	if (!came)
		memmove(to, from, n);
	return came;
}

static void accesses(void)
{
	struct large from = { { 1 } }, to;

	CHECK_EQ(read_byte(none), SIGSEGV);
	CHECK(address == none);
	CHECK_EQ(read_short((short *)none), SIGSEGV);
	CHECK_EQ(read_int((int *)none), SIGSEGV);
	CHECK_EQ(read_long((long long *)none), SIGSEGV);
	CHECK_EQ(read_double((double *)none), SIGSEGV);
	CHECK_EQ(read_int((int *)16), SIGSEGV);
	CHECK(address == (void *)16);
	CHECK_EQ(read_byte(half + 4095), -2);
	CHECK_EQ(read_byte(half + 4096), SIGSEGV);
	CHECK_EQ(write_byte(none), SIGSEGV * 10 + 8);
	CHECK_EQ(write_short((short *)none), SIGSEGV * 10 + 8);
	CHECK_EQ(write_int((int *)none), SIGSEGV * 10 + 8);
	CHECK_EQ(write_long((long long *)none), SIGSEGV * 10 + 8);
	CHECK_EQ(write_double((double *)none), SIGSEGV * 10 + 8);
	CHECK_EQ(write_int((int *)(readable + 8)), SIGSEGV * 10 + 8);
	CHECK(address == readable + 8);
	CHECK_EQ(read_int((int *)(readable + 8)), -2);
	CHECK_EQ(adds((int *)none), SIGSEGV);
	CHECK_EQ(exchanges((int *)none), SIGSEGV);
	CHECK_EQ(copies(&to, (struct large *)none), SIGSEGV);
	CHECK_EQ(copies((struct large *)none, &from), SIGSEGV);
	CHECK_EQ(copies(&to, &from), 0);
	CHECK_EQ(to.a[0], 1);
	CHECK_EQ(sums((int *)half, 1024), 0);
	CHECK_EQ(sums((int *)half, 1025), -SIGSEGV);
	CHECK(address == half + 4096);
	CHECK_EQ(fills(half + 4000, 200), SIGSEGV);
	CHECK_EQ(moves(half + 4000, (char *)&from, 200), SIGSEGV);
	CHECK_EQ(moves((char *)&to, half + 4090, 20), SIGSEGV);
	memset(half, 0, 4096);
}

#define DIVIDES(name, type, op) \
	static long name(volatile type a, volatile type b) \
	{ \
		int came = sigsetjmp(back, 1); \
		return came ? came : (long)(a op b); \
	}
DIVIDES(quotient, int, /)
DIVIDES(unsigned_quotient, unsigned, /)
DIVIDES(remainder_of, int, %)
DIVIDES(long_quotient, long long, /)
DIVIDES(long_remainder, unsigned long long, %)

static void divisions(void)
{
	CHECK_EQ(quotient(7, 2), 3);
	CHECK_EQ(quotient(7, 0), SIGFPE);
	CHECK_EQ(quotient(INT32_MIN, -1), SIGFPE);
	CHECK_EQ(unsigned_quotient(7, 0), SIGFPE);
	CHECK_EQ(remainder_of(-7, 4), -3);
	CHECK_EQ(remainder_of(7, 0), SIGFPE);
	CHECK_EQ(long_quotient(7, 0), SIGFPE);
	CHECK_EQ(long_quotient(INT64_MIN, -1), SIGFPE);
	CHECK_EQ(long_quotient(-70, 7), -10);
	CHECK_EQ(long_remainder(7, 0), SIGFPE);
}

static int beyond_the_file(void)
{
	int fd = open("f", O_CREAT | O_RDWR, 0600), came;
	char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	NEED(p != MAP_FAILED);
	came = read_byte(p);
	close(fd);
	unlink("f");
	munmap(p, 8192);
	return came;
}

/* A handler that computes is left by the next signal's, and that jumps into the function that both
 * interrupted. */
static void computes_on(int sig, siginfo_t *info, void *context)
{
	(void)sig, (void)info, (void)context;
	CHECK_EQ(read_byte(none), SIGSEGV);
	for (;;)
		turns++;
}

static void out(int sig)
{
	siglongjmp(outer, sig);
}

static int nested(void)
{
	struct sigaction first = { .sa_sigaction = computes_on, .sa_flags = SA_SIGINFO },
			 second = { .sa_handler = out };
	int came;

	NEED(sigaction(SIGUSR1, &first, NULL) == 0 && sigaction(SIGALRM, &second, NULL) == 0);
	came = sigsetjmp(outer, 1);
	if (!came) {
		tick(3000);
		raise(SIGUSR1);
		for (;;)
			turns++;
	}
	return came;
}

/* The allocator may be left in the middle: nothing is allocated by the parent afterwards, nor by
 * this child. */
static int allocates(void)
{
	int status;
	pid_t child = fork();

	if (child == 0) {
		struct sigaction second = { .sa_handler = out };
		int came;

		sigaction(SIGALRM, &second, NULL);
		came = sigsetjmp(outer, 1);
		if (!came) {
			tick(2000);
			for (;;)
				free(malloc(100 + (turns++ & 1023)));
		}
		_exit(came);
	}
	NEED(child > 0 && waitpid(child, &status, 0) == child);
	return WEXITSTATUS(status);
}

static void *in_thread(void *p)
{
	for (int i = 0; i < 20; i++) {
		if (read_int(p) != SIGSEGV || quotient(i, 0) != SIGFPE)
			return "wrong";
		CHECK_EQ(read_byte(half), -2);
	}
	return NULL;
}

static void threads(void)
{
	pthread_t thread[4];
	void *wrong;

	for (int i = 0; i < 4; i++)
		NEED(pthread_create(&thread[i], NULL, in_thread, none) == 0);
	for (int i = 0; i < 4; i++) {
		NEED(pthread_join(thread[i], &wrong) == 0);
		CHECK(wrong == NULL);
	}
}

static void all(void)
{
	struct sigaction action = { .sa_sigaction = jump, .sa_flags = SA_SIGINFO };
	int signals[] = { SIGALRM, SIGSEGV, SIGBUS, SIGFPE };
	sigset_t mask;

	for (int i = 0; i < 4; i++)
		NEED(sigaction(signals[i], &action, NULL) == 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQ(stores(), SIGALRM);
		CHECK_EQ(computes(i), SIGALRM);
		CHECK_EQ(nested_loops(5), SIGALRM * 1000 + 16 + 12);
		CHECK_EQ(again_and_again(), 21);
	}
	accesses();
	divisions();
	CHECK_EQ(beyond_the_file(), SIGBUS);
	CHECK_EQ(nested(), SIGALRM);
	CHECK_EQ(allocates(), SIGALRM);
	sigprocmask(SIG_BLOCK, NULL, &mask);
	CHECK(!sigismember(&mask, SIGALRM) && !sigismember(&mask, SIGUSR1) && !sigismember(&mask, SIGSEGV));
}

int main(void)
{
	pid_t child;
	int status;

	none = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	half = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	readable = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(none != MAP_FAILED && half != MAP_FAILED && readable != MAP_FAILED && munmap(half + 4096, 4096) == 0);
	all();
	threads();
	child = fork();
	if (child == 0) {
		all();
		threads();
		_exit(check_done());
	}
	NEED(child > 0);
	all();
	NEED(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	return check_done();
}
