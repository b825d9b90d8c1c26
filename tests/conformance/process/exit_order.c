/* exit runs handlers in reverse order, flushes stdio, and hands on its status. */
#include "check.h"

static int step;
static FILE *log_file;

static void last(void)
{
	if (step++ != 2)
		_exit(3);
	/* Nobody closed it: exit does, after the handlers. Its name is gone already. */
	fputs("written", log_file);
	if (check_failures)
		_exit(1);
}

static void middle(void)
{
	if (step++ != 1)
		_exit(4);
}

static void first(void)
{
	if (step++ != 0)
		_exit(5);
}

int main(void)
{
	NEED((log_file = fopen("log", "w")));
	CHECK_EQ(unlink("log"), 0);
	CHECK_EQ(atexit(last), 0);
	CHECK_EQ(atexit(middle), 0);
	CHECK_EQ(atexit(first), 0);
	exit(check_done());
}
