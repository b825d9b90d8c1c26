/* Copies between memories in every way there is, redirects a path to its own memory, and blocks
 * while others are served. */
#include "style.h"
#include <pthread.h>

#define WIDE 0x123456789aull  /* no number of 32 bits */

static char text[20000];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int waiting;

static uint64_t here(const void *p)
{
	return (uint64_t)(uintptr_t)p;
}

/* (from, size, type): what came, as its length, or -1 if the copy failed. */
HANDLER(on_copy_in)
{
	memset(text, '#', sizeof text);
	if (copy_data_between_cages(grate, c1, a1, c1, here(text), grate, a2, a3) == (int)ELINDAPIABORTED)
		return -EFAULT;
	/* The bytes behind the string or the copy are left alone. */
	for (size_t i = a3 ? strlen(text) + 1 : (size_t)a2; i < sizeof text; i++)
		if (text[i] != '#')
			return -EBADMSG;
	return a3 ? (int)strlen(text) : (int)a2;
}

/* (to, size): writes that many bytes, an offset into the argument included. */
HANDLER(on_copy_out)
{
	memset(text, 'o', sizeof text);
	if (copy_data_between_cages(grate, c1, here(text), grate, a1, c1, 1, 0) == (int)ELINDAPIABORTED ||
	    copy_data_between_cages(grate, c1, here(text), grate, a1 + 8, c1, a2 - 8, 0) == (int)ELINDAPIABORTED)
		return -EFAULT;
	return 0;
}

/* The client's path does not matter: the path that is opened lies in this grate's memory. */
HANDLER(on_open)
{
	static const char other[] = "/grates-test/other";

	return make_threei_call(2, 0, grate, c1, here(other), grate | GRATE_MEMORY_FLAG, a2, c2, a3, c3,
	    0xdeadbeefdeadbeef, 0xdeadbeefdeadbeef, 0, 0xdeadbeefdeadbeef, 0, 0, 0);
}

/* Returns when as many callers as it says are here. */
HANDLER(on_meet)
{
	(void)grate;
	pthread_mutex_lock(&lock);
	if (++waiting == (int)a1)
		pthread_cond_broadcast(&changed);
	while (waiting < (int)a1)
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
	return 0;
}

/* Does not send it on: the program goes on, and ends by its thread. */
HANDLER(on_exit_group)
{
	(void)grate, (void)a1;
	return 5;
}

static void before(uint64_t child, uint64_t grate)
{
	take(child, 2, grate, on_open);
	take(child, 2100, grate, on_copy_in);
	take(child, 2101, grate, on_copy_out);
	take(child, 2102, grate, on_meet);
	take(child, 231, grate, on_exit_group);
	take(child, WIDE, grate, on_meet);
}

int main(int argc, char **argv)
{
	(void)argc;
	return run_registering_parent(argv + 1, before);
}
