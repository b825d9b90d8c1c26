/*
 * Functions that are called through pointers of other types: without a prototype, with arguments
 * too few or too many, with a result that nobody asked for. Not valid C any more, but all over
 * programs; the compiler is given no option for it.
 */
#include "../check.h"
#include <pthread.h>
#include <search.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#pragma GCC diagnostic ignored "-Wdeprecated-non-prototype"
#pragma GCC diagnostic ignored "-Wstrict-prototypes"
#pragma GCC diagnostic ignored "-Wcast-function-type"

static int counted;
static void *thread()
{
	return "thread";
}
static void count()
{
	counted++;
}
static int twice(int a)
{
	return 2 * a;
}
static long long wide(long long a)
{
	return a + 1;
}
static double scaled(double a, int b)
{
	return a * b;
}
static int by_first(const char **a, const char **b, int unused)
{
	return **a - **b + 0 * unused;
}

/* The child comes back through the call that does not fit. */
static long forks()
{
	return fork();
}

int main(void)
{
	const char *names[] = { "pear", "apple", "fig" };
	pthread_t t;
	void *result, *tree = NULL;
	int status;

	NEED(pthread_create(&t, NULL, (void *(*)(void *))thread, NULL) == 0);
	NEED(pthread_join(t, &result) == 0);
	CHECK_STR(result, "thread");

	signal(SIGUSR1, (void (*)(int))count);
	raise(SIGUSR1);
	CHECK_EQ(counted, 1);

	qsort(names, 3, sizeof *names, (int (*)(const void *, const void *))(void (*)(void))by_first);
	CHECK_STR(names[0], "apple");
	CHECK_STR(names[2], "pear");

	tsearch("x", &tree, (int (*)(const void *, const void *))strcmp);
	twalk(tree, (void (*)(const void *, VISIT, int))(void (*)(void))count);
	CHECK_EQ(counted, 2);

	int (*volatile more)(int, int, int) = (int (*)(int, int, int))(void (*)(void))twice;
	CHECK_EQ(more(21, 5, 6), 42);
	void (*volatile no_result)(int) = (void (*)(int))(void (*)(void))twice;
	no_result(1);
	int (*volatile narrow)(int) = (int (*)(int))(void (*)(void))wide;
	CHECK_EQ(narrow(7), 8);
	double (*volatile swapped)(int, double) = (double (*)(int, double))(void (*)(void))scaled;
	CHECK(swapped(3, 1.5) == 4.5);

	int (*volatile away)(int, int) = (int (*)(int, int))(void (*)(void))forks;
	pid_t child = away(1, 2);
	if (child == 0)
		_exit(counted + 5);
	NEED(child > 0);
	CHECK_EQ(waitpid(child, &status, 0), child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	return check_done();
}
