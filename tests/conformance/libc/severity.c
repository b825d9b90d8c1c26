/* Names of glibc that tune or extend it: addseverity and what fmtmsg makes of it, mallopt, and the
 * least size of a stack. */
#include "../check.h"
#include <fmtmsg.h>
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>

/* The text that fmtmsg wrote to standard error. */
static const char *said(int severity, int *result)
{
	static char text[256];
	int ends[2], error = dup(2);
	ssize_t n;

	NEED(pipe(ends) == 0 && error >= 0 && dup2(ends[1], 2) == 2);
	*result = fmtmsg(MM_PRINT, "a:b", severity, "text", "act", NULL);
	dup2(error, 2);
	close(error), close(ends[1]);
	n = read(ends[0], text, sizeof text - 1);
	text[n < 0 ? 0 : n] = 0;
	close(ends[0]);
	return text;
}

static void *runs(void *unused)
{
	return unused;
}

int main(void)
{
	pthread_attr_t attr;
	pthread_t thread;
	void *stack, *result = NULL;
	int done;
	long least = PTHREAD_STACK_MIN;

	CHECK(strstr(said(MM_WARNING, &done), "WARNING: text") && done == MM_OK);
	CHECK_STR(said(9, &done), "");
	CHECK_EQ(done, MM_NOTOK);
	CHECK_EQ(addseverity(9, "PANIC"), MM_OK);
	CHECK(strstr(said(9, &done), "a:b: PANIC: text\nTO FIX: act") && done == MM_OK);
	CHECK_EQ(addseverity(9, "CALM"), MM_OK);
	CHECK(strstr(said(9, &done), "CALM: text"));
	CHECK_EQ(addseverity(9, NULL), MM_OK);
	CHECK_EQ(addseverity(9, NULL), MM_NOTOK);
	CHECK_STR(said(9, &done), "");
	CHECK_EQ(addseverity(MM_INFO, "MINE"), MM_NOTOK);
	CHECK_EQ(addseverity(MM_NOSEV, "MINE"), MM_NOTOK);

	CHECK_EQ(mallopt(M_TRIM_THRESHOLD, 1 << 20), 1);
	CHECK_EQ(mallopt(M_TOP_PAD, 4096), 1);
	CHECK_EQ(mallopt(M_MMAP_THRESHOLD, 1 << 20), 1);
	CHECK_EQ(mallopt(M_MMAP_MAX, 100), 1);
	CHECK_EQ(mallopt(M_ARENA_MAX, 2), 1);
	CHECK_EQ(mallopt(M_ARENA_TEST, 2), 1);
	CHECK_EQ(mallopt(M_PERTURB, 0), 1);
	CHECK_EQ(mallopt(M_MXFAST, 16), 1);
	CHECK_EQ(mallopt(M_MXFAST, 100000), 0);
	CHECK_EQ(mallopt(M_MXFAST, -1), 0);
	CHECK_EQ(mallopt(12345, 1), 1);

	CHECK_EQ(least % 4096, 0);
	CHECK_EQ(sysconf(_SC_THREAD_STACK_MIN) % 4096, 0);
	NEED(pthread_attr_init(&attr) == 0);
	CHECK_EQ(pthread_attr_setstacksize(&attr, (size_t)least - 1), EINVAL);
	CHECK_EQ(pthread_attr_setstacksize(&attr, (size_t)least), 0);
	stack = mmap(NULL, (size_t)least, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	NEED(stack != MAP_FAILED);
	CHECK_EQ(pthread_attr_setstack(&attr, stack, (size_t)least), 0);
	NEED(pthread_create(&thread, &attr, runs, stack) == 0);
	CHECK_EQ(pthread_join(thread, &result), 0);
	CHECK(result == stack);
	return check_done();
}
