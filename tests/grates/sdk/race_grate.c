/*
 * Allows what race.c opens only if the name is innocent, and between that decision and the call
 * lets the client's other thread change the name. With --as-is the call goes on as it came.
 */
#include <lind/grate.h>
#include <pthread.h>

LIND_HANDLE(answers, openat);
LIND_HANDLE(answers, getppid);
LIND_HANDLE(answers, getpgrp);

static int as_is, decided, changed;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t news = PTHREAD_COND_INITIALIZER;

static void tell(int *flag)
{
	pthread_mutex_lock(&lock);
	*flag = 1;
	pthread_cond_broadcast(&news);
	pthread_mutex_unlock(&lock);
}

static void await(const int *flag)
{
	pthread_mutex_lock(&lock);
	while (!*flag)
		pthread_cond_wait(&news, &lock);
	pthread_mutex_unlock(&lock);
}

static int64_t on_openat(const struct lind_call *cx, int dir, const char *path, int flags, mode_t mode)
{
	if (strcmp(path, "/tmp/race-open"))
		return -EACCES;
	tell(&decided);
	await(&changed);
	return as_is ? lind_forward(cx) : lind_forward_openat(cx, dir, path, flags, mode);
}

/* Returns when the name has been judged. */
static int64_t on_getppid(const struct lind_call *cx)
{
	(void)cx;
	await(&decided);
	return 1;
}

/* Says that the name is another now. */
static int64_t on_getpgrp(const struct lind_call *cx)
{
	(void)cx;
	tell(&changed);
	return 1;
}

LIND_SETS(set_as_is, as_is = 1)

int main(int argc, char **argv)
{
	static const struct lind_option options[] = { { 0, "as-is", NULL, "forward what is in the client's memory",
	    set_as_is } };

	lind_options(options, 1, "Loses or wins a race.", &argc, &argv);
	return lind_grate_main(argc, argv);
}
