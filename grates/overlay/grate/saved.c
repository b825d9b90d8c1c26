/* The state that this run changes: whose turn it is, and whether it still takes changes. */
#include "saved.h"
#include <errno.h>
#include <lind/options.h>
#include <pthread.h>

struct store *store;

static int broken;
static pthread_mutex_t entered = PTHREAD_MUTEX_INITIALIZER;

void store_enter(void)
{
	pthread_mutex_lock(&entered);
}

void store_leave(void)
{
	pthread_mutex_unlock(&entered);
}

int store_breaks(int error, const char *what)
{
	if (!broken)
		lind_log("cannot write to the state any more; changes are lost at the end: %s", what);
	broken = broken ? broken : error == -ENOSPC ? error : -EIO;
	return broken;
}

int store_broken(void)
{
	return broken;
}
